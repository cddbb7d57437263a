"""Validations stored under a version, and what changed from one to the next."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max

from annotation.models import Judgment, Study, Submission
from validation.analysis.material import Material
from validation.analysis.report import ValidationReport, report_of
from validation.analysis.settings import Settings
from validation.changes import what_changed
from validation.documents.figures import scatter_rows
from validation.models import ValidationVersion
from validation.results import FORM, labels_of, measure_of
from validation.rows import Scatters, StoredResults, write_rows
from validation.study_validation import study_material


@dataclass(frozen=True)
class StoredVersion:
    """A stored validation, and whether it is new or was there already."""

    version: ValidationVersion
    is_new: bool


def make_validation(
    *,
    study: Study,
    settings: Settings | None = None,
    created_by: AbstractBaseUser | None = None,
) -> StoredVersion:
    """The study's validation: a new version where judgments, scores or settings changed.

    What changed is counted from the last version by the same settings or, where there is none,
    against the last version.
    """
    settings = settings or Settings()
    basis = _judgments_basis(study)
    material = study_material(study, settings)
    before = _last(study, settings)
    if before is not None and _is_of(before, material.fingerprint, settings):
        return StoredVersion(before, is_new=False)
    report = report_of(material, settings)
    basis["judgments_digest"] = material.judgments_digest
    scatters = dict(_scatters(material, settings))
    return _store(study, report, scatters, basis, created_by)


def _is_of(version: ValidationVersion, fingerprint: str, settings: Settings) -> bool:
    """Whether a version is of the same input, settings and form."""
    key = (version.fingerprint, version.settings_digest, version.form)
    return key == (fingerprint, settings.digest, FORM)


def _last(study: Study, settings: Settings) -> ValidationVersion | None:
    """The last version by these settings; the last of all where there is none."""
    versions = ValidationVersion.objects.of(study).newest_first()
    return versions.filter(settings_digest=settings.digest).first() or versions.first()


def _judgments_basis(study: Study) -> dict[str, Any]:
    """The state of the judgments, by which a later version says what changed."""
    judgments = Judgment.objects.of(study)
    rejected = Submission.objects.of(study).filter(status=Submission.Status.REJECTED)
    return {
        "n_study_judgments": judgments.count(),
        "last_judgment": judgments.aggregate(last=Max("pk"))["last"] or 0,
        "rejected": sorted(rejected.values_list("pk", flat=True)),
    }


def _judgment_changes(before: ValidationVersion, now: dict[str, Any]) -> dict[str, int]:
    """Judgments since: how many came, went, were rejected or taken back in."""
    judgments = Judgment.objects.of(before.study)
    fresh = judgments.filter(pk__gt=before.last_judgment)
    n_added = fresh.filter(pk__lte=now["last_judgment"]).count()
    was, is_now = set(before.rejected), set(now["rejected"])
    old = judgments.filter(pk__lte=before.last_judgment)
    return {
        "n_added": n_added,
        "n_removed": before.n_study_judgments + n_added - now["n_study_judgments"],
        "n_newly_rejected": old.filter(submission__in=is_now - was).count(),
        "n_reinstated": old.filter(submission__in=was - is_now).count(),
    }


def _scatters(material: Material, settings: Settings) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """What the scatters of the family are drawn from."""
    labels = labels_of((one.metric, one.signature) for one in material.metrics)
    for of_all in material.panels(settings, scopes=("all",)):
        panel = of_all.of_primary()
        for number, metric in enumerate(panel.metrics):
            label = labels[metric.metric, metric.signature]
            rows = scatter_rows(panel.question, label, panel.cells(number))
            yield (panel.question, metric.metric, metric.signature), rows


@transaction.atomic
def _store(
    study: Study,
    report: ValidationReport,
    scatters: Scatters,
    basis: dict[str, Any],
    created_by: AbstractBaseUser | None,
) -> StoredVersion:
    study = Study.objects.select_for_update().get(pk=study.pk)
    before = _last(study, report.settings)
    if before is not None and _is_of(before, report.fingerprint, report.settings):
        return StoredVersion(before, is_new=False)  # another process was faster
    changes = {} if before is None else _judgment_changes(before, basis)
    last = ValidationVersion.objects.of(study).aggregate(last=Max("number"))["last"] or 0
    inputs = report.inputs
    version = ValidationVersion.objects.create(
        study=study,
        number=last + 1,
        form=FORM,
        fingerprint=report.fingerprint,
        rules=report.settings.content(),
        settings_digest=report.settings.digest,
        seed=report.settings.seed,
        n_judgments=inputs.n_judgments,
        n_rejected=inputs.n_rejected,
        n_counted=inputs.n_counted,
        n_annotators=inputs.n_annotators,
        n_items=inputs.n_items,
        n_candidates=inputs.n_candidates,
        measures=list(dict.fromkeys(map(measure_of, report.correlations))),
        since=before,
        created_by_id=created_by.pk if created_by else None,
        **basis,
        **changes,
    )
    write_rows(version, report, scatters)
    return StoredVersion(version, is_new=True)


def changes_of(version: ValidationVersion) -> dict[str, Any] | None:
    """What is different from the version before, from the rows of both; None for a first."""
    before = version.since
    if before is None:
        return None
    judgments = {
        "n_added": version.n_added,
        "n_removed": version.n_removed,
        "n_rejected": version.n_newly_rejected,
        "n_reinstated": version.n_reinstated,
        "are_same": before.judgments_digest == version.judgments_digest,
    }
    results = (StoredResults(one, with_variants=True) for one in (before, version))
    return {"since": before.number, "judgments": judgments} | what_changed(*results)
