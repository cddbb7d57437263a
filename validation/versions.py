"""Validations stored under a version, and what changed from one to the next.

A version is a `Result` of the kind "validation" with a record: the inputs, the measures and what
later versions compare judgments with. Its parts are the tables, one for each of `results.KINDS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

from django.db.models import Max

from annotation.models import Judgment, Question, Study, Submission
from annotation.study_facts import VALIDATION, Raters, raters_of
from metrics.exceptions import ValidationUnknown
from results.kinds import Computed
from results.models import Result, ResultQuerySet, pack_record, unpack_record
from validation.analysis.material import Material
from validation.analysis.records import (
    CorrelationRecord,
    Inputs,
    LabelSourceRecord,
    Measure,
    Record,
    ScoreSetRecord,
    SystemRecord,
    SystemScoreRecord,
    plain,
)
from validation.analysis.report import report_of
from validation.analysis.settings import Settings
from validation.documents.figures import scatter_rows
from validation.results import (
    FORM,
    KINDS,
    NAMES,
    Results,
    ScatterRows,
    labels_of,
    measure_of,
)
from validation.study_validation import study_material

SCATTERS = "scatters"
R = TypeVar("R", bound=Record)
KEY = ("question", "scope", "by", "level", "coefficient", "metric", "signature")
Changes = list[dict[str, Any]]


def list_validations(study: Study) -> ResultQuerySet:
    return Result.objects.of(study, VALIDATION).filter(form=FORM).exclude(packed_record=None)


def find_validation(study: Study, number: int) -> Result:
    versions = list_validations(study)
    version = versions.filter(number=number).first()
    if version is None:
        raise ValidationUnknown(number, sorted(versions.values_list("number", flat=True)))
    version.subject = study
    return version


def studied_by(version: Result) -> Study:
    return cast(Study, version.subject)


class StoredResults(Results):
    def __init__(self, version: Result, *, with_variants: bool = False) -> None:
        self.version = version
        self.subject = studied_by(version)
        self.study = self.subject.slug
        self.fingerprint = version.facts["material"]
        self.settings = Settings.of(version.settings)
        self.with_variants = with_variants
        self._contents: dict[str, Any] = {}

    @cached_property
    def all_inputs(self) -> Inputs:
        stored = self.version.record["inputs"]
        sets = tuple(ScoreSetRecord(**row) for row in stored["score_sets"])
        labels = tuple(LabelSourceRecord(**row) for row in stored["labels"])
        return Inputs(**stored | {"score_sets": sets, "labels": labels})

    @cached_property
    def raters(self) -> Raters:
        return raters_of(self.subject)

    @cached_property
    def scales(self) -> Mapping[str, tuple[float, float]]:
        if self.settings.ratings != "raw":
            return {}
        questions = Question.objects.filter(study=self.version.subject_id)
        rows = questions.values_list("name", "scale_min", "scale_max")
        return {name: (low, high) for name, low, high in rows}

    @cached_property
    def measures(self) -> list[Measure]:
        return [Measure(*names) for names in self.version.record["measures"]]

    def load(self, *kinds: type[Any]) -> None:
        """Read several tables with one query."""
        parts = self.version.parts.filter(name__in=[NAMES[kind] for kind in kinds])
        self._contents |= parts.values_list("name", "content")

    def read_table(self, kind: type[R]) -> Sequence[R]:
        if NAMES[kind] not in self._contents:
            self.load(kind)
        content = self._contents.pop(NAMES[kind], None)
        return [] if content is None else list(unpack_table(kind, bytes(content)))

    def scatter_words(self, question: str, metric: str, signature: str) -> str | None:
        """None if there is no such scatter."""
        words: dict[tuple[str, ...], str] = {
            tuple(source): words for *source, words in self.version.record[SCATTERS]
        }
        return words.get((question, metric, signature))

    def scatter(self, question: str, metric: str, signature: str) -> ScatterRows | None:
        words = self.scatter_words(question, metric, signature)
        if words is None:
            return None
        at = [source for *source, _words in self.version.record[SCATTERS]].index(
            [question, metric, signature]
        )
        return ScatterRows(words, tuple(self._scatter_tables[at]))

    @cached_property
    def _scatter_tables(self) -> list[list[dict[str, Any]]]:
        part = self.version.parts.get(name=SCATTERS)
        tables: list[list[dict[str, Any]]] = unpack_record(part.content)[SCATTERS]
        return tables


def pack_table(rows: Sequence[Record]) -> bytes:
    """As lists of values, which are smaller than one mapping per row."""
    return pack_record({"rows": [list(plain(row).values()) for row in rows]})


def unpack_table(kind: type[R], packed: bytes) -> Iterator[R]:
    for values in unpack_record(packed)["rows"]:
        if kind is SystemRecord:
            values[-1] = tuple(SystemScoreRecord(**one) for one in values[-1])
        yield kind(*values)


def compute_validation(study: Study, settings: Settings, before: Result | None) -> Computed | None:
    """None if judgments, scores and settings are those of the version before."""
    basis = _judgments_basis(study)
    material = study_material(study, settings)
    if before is not None and _is_of(before, material.fingerprint, settings):
        return None
    report = report_of(material, settings)
    basis["judgments_digest"] = material.judgments_digest
    scatters = dict(_scatters(material, settings))
    since = None
    if before is not None:
        changes = _judgment_changes(study, before.record["basis"], basis)
        since = {"number": before.number, "judgments": changes}
    record = {
        "inputs": plain(report.inputs),
        "measures": list(dict.fromkeys(map(measure_of, report.correlations))),
        SCATTERS: [[*source, rows.words] for source, rows in scatters.items()],
        "basis": basis,
        "since": since,
    }
    tables = {name: pack_table(getattr(report, name)) for name in KINDS}
    points = {SCATTERS: [rows.rows for rows in scatters.values()]}
    return Computed(
        record=record,
        parts=tables | {SCATTERS: pack_record(points)},
        settings=settings.content(),
        seed=settings.seed,
        facts={"settings_digest": settings.digest, "material": report.fingerprint},
    )


def _is_of(version: Result, fingerprint: str, settings: Settings) -> bool:
    known = version.facts["material"], version.facts["settings_digest"]
    return known == (fingerprint, settings.digest)


def find_last(study: Study, settings: Settings) -> Result | None:
    """The last version with these settings, otherwise the last of all."""
    versions = list_validations(study).defer(None)
    version = versions.filter(facts__settings_digest=settings.digest).first() or versions.first()
    if version is not None:
        version.subject = study
    return version


def _judgments_basis(study: Study) -> dict[str, Any]:
    judgments = Judgment.objects.of(study)
    rejected = Submission.objects.of(study).filter(status=Submission.Status.REJECTED)
    return {
        "n_study_judgments": judgments.count(),
        "last_judgment": judgments.aggregate(last=Max("pk"))["last"] or 0,
        "rejected": sorted(rejected.values_list("pk", flat=True)),
    }


def _judgment_changes(
    study: Study, before: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    judgments = Judgment.objects.of(study)
    fresh = judgments.filter(pk__gt=before["last_judgment"])
    n_added = fresh.filter(pk__lte=now["last_judgment"]).count()
    was, is_now = set(before["rejected"]), set(now["rejected"])
    old = judgments.filter(pk__lte=before["last_judgment"])
    return {
        "n_added": n_added,
        "n_removed": before["n_study_judgments"] + n_added - now["n_study_judgments"],
        "n_rejected": old.filter(submission__in=is_now - was).count(),
        "n_reinstated": old.filter(submission__in=was - is_now).count(),
        "are_same": before["judgments_digest"] == now["judgments_digest"],
    }


def _scatters(material: Material, settings: Settings) -> Iterator[tuple[tuple[str, str, str], Any]]:
    labels = labels_of((one.metric, one.signature) for one in material.metrics)
    for of_all in material.panels(settings, scopes=("all",)):
        panel = of_all.of_primary()
        for number, metric in enumerate(panel.metrics):
            label = labels[metric.metric, metric.signature]
            rows = scatter_rows(panel.question, label, panel.cells(number))
            yield (panel.question, metric.metric, metric.signature), rows


def diff_since(version: Result) -> dict[str, Any] | None:
    """None for the first version."""
    since = version.record["since"]
    if since is None:
        return None
    before = find_validation(studied_by(version), since["number"])
    was, now = (StoredResults(one, with_variants=True) for one in (before, version))
    return {
        "since": before.number,
        "judgments": since["judgments"],
        "settings": _settings(was, now),
        "score_sets": _score_sets(was, now),
        "correlations": _correlations(was, now),
    }


def _settings(before: Results, now: Results) -> Changes:
    was, is_now = before.settings.content(), now.settings.content()
    return [
        {"setting": name, "before": was.get(name), "now": is_now[name]}
        for name in is_now
        if was.get(name) != is_now[name]
    ]


def _score_sets(before: Results, now: Results) -> Changes:
    was, is_now = (
        {(one.metric, one.signature): one for one in results.inputs.score_sets}
        for results in (before, now)
    )
    changes: Changes = []
    for metric, signature in dict.fromkeys([*was, *is_now]):
        old, new = was.get((metric, signature)), is_now.get((metric, signature))
        if old is None or new is None:
            change = "added" if old is None else "removed"
        elif old.digest != new.digest:
            change = "changed"
        else:
            continue
        counts = {"n_before": old.n_scores if old else 0, "n_now": new.n_scores if new else 0}
        changes.append({"metric": metric, "signature": signature, "change": change} | counts)
    return changes


def _correlations(before: Results, now: Results) -> Changes:
    """A value is None if the row is new, gone or undefined."""
    was, is_now = (
        {tuple(getattr(row, n) for n in KEY): row for row in results.rows(CorrelationRecord)}
        for results in (before, now)
    )
    changes: Changes = []
    for key in dict.fromkeys([*is_now, *was]):
        old, new = was.get(key), is_now.get(key)
        first, last = (None if row is None else row.value for row in (old, new))
        if first == last and (old is None) == (new is None):
            continue
        values = {
            "before": first,
            "now": last,
            "delta": None if first is None or last is None else last - first,
            "rank_before": old.rank if old else None,
            "rank_now": new.rank if new else None,
        }
        changes.append(dict(zip(KEY, key, strict=True)) | values)
    return changes
