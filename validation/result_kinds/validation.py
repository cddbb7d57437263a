from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from accounts.models import User
from annotation.agreement import judged_protocols
from annotation.models import Study
from annotation.result_kinds.base import StudyKind
from annotation.study_facts import VALIDATION
from metrics.exceptions import NothingToValidate
from results.computing import ComputedMeanwhile, compute_once
from results.kinds import Computed, Given, register_kind
from results.models import Result
from results.tables import Count, Estimate, PValue, Record, Table, Text, Value
from validation.analysis.records import plain
from validation.analysis.settings import Settings
from validation.results import FORM, KINDS
from validation.versions import compute_validation, find_last, unpack_table

MEASURE = {
    "question": Text(gettext_lazy("Question")),
    "scope": Text(gettext_lazy("Conditions")),
    "by": Text(gettext_lazy("Condition")),
    "level": Text(gettext_lazy("Level")),
    "coefficient": Text(gettext_lazy("Coefficient")),
}


@register_kind
class ValidationKind(StudyKind):
    """How well metrics agree with people: a numbered version for other judgments or scores.

    A result without record has the reason why there is nothing to validate among its facts.
    """

    name = page = VALIDATION
    title = gettext_lazy("Metrics")
    form = FORM
    depends_on = ("judgments_version", "scores_version")
    tables = {
        "correlations": Table(
            gettext_lazy("Metrics by agreement with people"),
            MEASURE
            | {
                "metric": Text(gettext_lazy("Metric")),
                "value": Estimate(gettext_lazy("Value")),
                "rank": Value(gettext_lazy("Rank"), digits=1),
                "n_used": Count(gettext_lazy("Groups")),
            },
        ),
        "comparisons": Table(
            gettext_lazy("Differences of metrics"),
            MEASURE
            | {
                "metric_a": Text(gettext_lazy("Metric")),
                "metric_b": Text(gettext_lazy("Other metric")),
                "delta": Estimate(gettext_lazy("Difference")),
                "p_holm": PValue(gettext_lazy("p, Holm"), reason="reason"),
            },
        ),
        "ceilings": Table(
            gettext_lazy("Ceilings"),
            MEASURE
            | {
                "attainable": Estimate(
                    gettext_lazy("Attainable"), low="attainable_low", high="attainable_high"
                ),
                "leave_one_out": Value(gettext_lazy("One more annotator")),
            },
        ),
    }

    def list_variants(
        self, subject: Study, settings: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Each version of the protocol by itself, if there are several."""
        numbers = judged_protocols(subject, round=Settings().round)
        return [{"protocol": number} for number in numbers] if len(numbers) > 1 else []

    def compute(self, given: Given[Study]) -> Computed:
        study, settings = given.subject, Settings.of(given.settings)
        fingerprint = self.fingerprint(study, given.settings)
        results = self.list_results(study)
        # Not needed any longer, so that versions are numbered without gaps.
        empty = results.filter(packed_record=None)
        (empty.exclude(fingerprint=self.fingerprint(study)) if given.settings else empty).delete()
        same = list(results.filter(fingerprint=fingerprint).values_list("pk", flat=True))
        before = find_last(study, settings)
        try:
            computed = compute_validation(study, settings, before)
        except NothingToValidate as nothing:
            facts = {"reason": str(nothing), "code": nothing.code}
            computed = Computed(settings=settings.content(), facts=facts)
        # Computed again although the study counted no change: a batch was launched, for example.
        Result.objects.filter(pk__in=same).update(fingerprint="")
        if computed is None and before is not None:
            Result.objects.filter(pk=before.pk).update(fingerprint=fingerprint)
            before.fingerprint = fingerprint
            raise ComputedMeanwhile(before)
        assert computed is not None
        return computed

    def finish(self, subject: Study, inputs: Sequence[Any]) -> None:
        """Older versions are kept."""

    def read_record(self, result: Result) -> Record:
        parts = result.parts.filter(name__in=self.tables).values_list("name", "content")
        return {
            name: [plain(row) for row in unpack_table(KINDS[name], bytes(content))]
            for name, content in parts
        }


def current_version(study: Study) -> Result | None:
    """None if it is not computed yet, or there is nothing to validate."""
    result = ValidationKind().find_current(study)
    return None if result is None or "reason" in result.facts else result


@dataclass(frozen=True)
class StoredVersion:
    version: Result
    is_new: bool


def make_validation(
    *, study: Study, settings: Settings | None = None, created_by: User | None = None
) -> StoredVersion:
    """Store a new version if judgments, scores or settings changed. Changes are counted from the
    last version with the same settings, otherwise from the last version.

    Raises NothingToValidate.
    """
    study = Study.objects.get(pk=study.pk)
    changes = (settings or Settings()).changes()
    kind = ValidationKind()
    result, is_new = compute_once(kind, study, (), changes, actor=created_by, is_repeated=True)
    if "reason" in result.facts:
        raise NothingToValidate(result.facts["reason"], code=result.facts["code"])
    return StoredVersion(result, is_new)
