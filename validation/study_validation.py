"""A study's judgments beside its scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.frames import judgment_frame
from annotation.models import Judgment, Study, Submission
from metrics.exceptions import NothingToValidate
from metrics.frames import score_frame
from metrics.models import Score, ScoringRun
from stats.correlation import Coefficient, Level
from validation.analysis.correlations import MetricAgreement, panel_rows
from validation.analysis.material import Material
from validation.analysis.report import ValidationReport, report_of
from validation.analysis.settings import Settings, only_for

LEVELS = Settings.levels
COEFFICIENTS = Settings.coefficients


@dataclass(frozen=True)
class StudyCorrelations:
    """The table of a report alone: every metric against every question, and by which rules."""

    study: str
    settings: Settings
    rows: tuple[MetricAgreement, ...]

    @property
    def round(self) -> int:
        return self.settings.round

    @property
    def aggregation(self) -> str:
        return self.settings.aggregation

    @property
    def n_resamples(self) -> int:
        return self.settings.n_resamples

    @property
    def seed(self) -> int:
        return self.settings.seed

    def records(self) -> list[dict[str, Any]]:
        return [row.record() for row in self.rows]


def validate_study(
    study: Study,
    *,
    round: int = 1,
    questions_of: Mapping[str, Sequence[str]] | None = None,
    levels: Sequence[Level] = LEVELS,
    coefficients: Sequence[Coefficient] = COEFFICIENTS,
    n_resamples: int = 1000,
    seed: int = 0,
) -> StudyCorrelations:
    """Correlate each metric of a study with each question, overall and by condition.

    `questions_of` names, by metric, the only questions it is meant for.
    """
    settings = Settings(
        round=round,
        questions_of=only_for(questions_of),
        levels=tuple(levels),
        coefficients=tuple(coefficients),
        n_resamples=n_resamples,
        seed=seed,
    )
    panels = study_material(study, settings).panels(settings, scopes=("all", "condition"))
    rows = [row for panel in panels for row in panel_rows(panel, settings)]
    runs = ScoringRun.objects.of(study).values_list("metric", "signature")
    order = {source: number for number, source in enumerate(runs)}
    # a metric's rows together; sorting keeps questions, conditions and levels in order
    rows.sort(key=lambda row: order[row.source])
    return StudyCorrelations(study.slug, settings, tuple(rows))


def study_report(study: Study, settings: Settings | None = None) -> ValidationReport:
    """The whole report of a study, computed now; `make_validation` keeps it."""
    settings = settings or Settings()
    return report_of(study_material(study, settings), settings)


def study_material(study: Study, settings: Settings) -> Material:
    """A study's judgments and scores, coded; NothingToValidate where either is missing."""
    _require_both(study, settings)
    judged = judgment_frame(study, accepted=False).assign(accepted=True)
    rejected = Submission.objects.of(study).filter(status=Submission.Status.REJECTED)
    names = list(rejected.values_list("annotator__pseudonym", "item__key", "round"))
    if names:
        passes = pd.MultiIndex.from_frame(judged[["annotator", "item", "round"]].astype(str))
        known = pd.MultiIndex.from_tuples([tuple(map(str, name)) for name in names])
        judged = judged.assign(accepted=~passes.isin(known))
    up = ScoringRun.objects.of(study).values_list("metric", "signature", "higher_is_better")
    runs = pd.DataFrame.from_records(list(up), columns=["metric", "signature", "higher_is_better"])
    return Material(judged, score_frame(study).merge(runs, on=["metric", "signature"]))


def _require_both(study: Study, settings: Settings) -> None:
    judgments = Judgment.objects.of(study).filter(submission__round=settings.round)
    if settings.judgments == "accepted":
        judgments = judgments.accepted()
    if not judgments.exists():
        raise NothingToValidate(
            f"Study '{study.slug}' has no judgments in round {settings.round} yet, "
            "or only rejected ones."
        )
    if not Score.objects.filter(run__study=study).exists():
        raise NothingToValidate(f"Study '{study.slug}' has no scores; score it or import some.")
