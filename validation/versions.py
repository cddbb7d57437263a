"""Reports kept under a version, and what changed from one to the next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max

from annotation.models import Judgment, Study, Submission
from metrics.models import ValidationRecord
from validation.analysis.changes import what_changed
from validation.analysis.material import Material
from validation.analysis.report import FORM, report_of
from validation.analysis.settings import Settings
from validation.study_validation import study_material


@dataclass(frozen=True)
class MadeReport:
    """A stored report, and whether it is new or was there already."""

    record: ValidationRecord
    is_new: bool


def make_validation(
    *,
    study: Study,
    settings: Settings | None = None,
    made_by: AbstractBaseUser | None = None,
) -> MadeReport:
    """The study's report: a new version where judgments, scores or settings changed.

    What changed is told against the last version by the same settings or, where there is none,
    against the last version.
    """
    settings = settings or Settings()
    basis = _judgments_basis(study)
    material = study_material(study, settings)
    before = _last(study, settings)
    if before is not None and _is_of(before, material, settings):
        return MadeReport(before, is_new=False)
    content = report_of(material, settings).content()
    return _kept(study, content, basis | {"judgments": material.judgments_digest}, made_by)


def _is_of(record: ValidationRecord, material: Material, settings: Settings) -> bool:
    """Whether a record is of the same judgments, scores, settings and form."""
    return (
        record.fingerprint == material.fingerprint
        and record.rules == settings.content()
        and record.content.get("form") == FORM
    )


def _last(study: Study, settings: Settings) -> ValidationRecord | None:
    """The last report by these settings; the last of all where there is none."""
    records = ValidationRecord.objects.of(study).newest_first()
    wanted = settings.content()
    of_settings = (pk for pk, own in records.values_list("pk", "rules") if own == wanted)
    pk = next(of_settings, None)
    return records.first() if pk is None else records.get(pk=pk)


def _judgments_basis(study: Study) -> dict[str, Any]:
    """The state of the judgments, by which a later report tells what changed."""
    judgments = Judgment.objects.of(study)
    rejected = Submission.objects.of(study).filter(status=Submission.Status.REJECTED)
    return {
        "n_judgments": judgments.count(),
        "last_judgment": judgments.aggregate(last=Max("pk"))["last"] or 0,
        "rejected": sorted(rejected.values_list("pk", flat=True)),
    }


def _judgment_changes(
    study: Study, before: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Judgments since: how many came, went, were rejected or taken back in."""
    fresh = Judgment.objects.of(study).filter(pk__gt=before["last_judgment"])
    n_added = fresh.filter(pk__lte=now["last_judgment"]).count()
    was, is_now = set(before["rejected"]), set(now["rejected"])
    old = Judgment.objects.of(study).filter(pk__lte=before["last_judgment"])

    def count(submissions: set[int]) -> int:
        return old.filter(submission__in=submissions).count()

    removed = before["n_judgments"] + n_added - now["n_judgments"]
    return {
        "n_added": n_added,
        "n_removed": removed,
        "n_rejected": count(is_now - was),
        "n_reinstated": count(was - is_now),
        "are_same": before["judgments"] == now["judgments"],
    }


@transaction.atomic
def _kept(
    study: Study, content: dict[str, Any], basis: dict[str, Any], made_by: AbstractBaseUser | None
) -> MadeReport:
    study = Study.objects.select_for_update().get(pk=study.pk)
    settings = Settings.of(content["settings"])
    before = _last(study, settings)
    same = before is not None and before.content == content
    if before is not None and same:  # another process was faster
        return MadeReport(before, is_new=False)
    changes = None
    if before is not None:
        judgments = _judgment_changes(study, before.basis, basis)
        told = what_changed(before.content, content)
        changes = {"since": before.version, "judgments": judgments} | told
    last = ValidationRecord.objects.of(study).aggregate(last=Max("version"))["last"] or 0
    record = ValidationRecord.objects.create(
        study=study,
        version=last + 1,
        fingerprint=content["fingerprint"],
        rules=content["settings"],
        basis=basis,
        content=content,
        changes=changes,
        made_by_id=made_by.pk if made_by else None,
    )
    return MadeReport(record, is_new=True)
