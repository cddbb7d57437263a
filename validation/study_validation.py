from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from annotation.frames import judgment_frame, sample_design
from annotation.models import Candidate, Judgment, Label, LabelSet, Question, Study, Submission
from annotation.protocols.versions import numbered_version
from metrics.exceptions import MetricsError, NothingToValidate
from metrics.models import Score, ScoringRun
from metrics.study_files import score_frame
from stats.libraries import pd
from validation.analysis.material import Design, Material
from validation.analysis.records import LabelSourceRecord
from validation.analysis.report import ValidationReport, report_of
from validation.analysis.settings import Settings

RUN = ["metric", "signature", "higher_is_better", "is_primary"]


def study_report(study: Study, settings: Settings | None = None) -> ValidationReport:
    settings = settings or Settings()
    return report_of(study_material(study, settings), settings)


def study_material(study: Study, settings: Settings) -> Material:
    """Raises NothingToValidate if judgments or scores are missing."""
    _require_both(study, settings)
    sets = _label_sets(study, settings)
    protocol = None if settings.protocol is None else numbered_version(study, settings.protocol)
    judged = judgment_frame(study, accepted=False, protocol=protocol).assign(accepted=True)
    rejected = Submission.objects.of(study).filter(status=Submission.Status.REJECTED)
    names = list(rejected.values_list("annotator__pseudonym", "item__key", "round"))
    if names:
        passes = pd.MultiIndex.from_frame(judged[["annotator", "item", "round"]].astype(str))
        known = pd.MultiIndex.from_tuples([tuple(map(str, name)) for name in names])
        judged = judged.assign(accepted=~passes.isin(known))
    if settings.cluster:
        judged = judged.assign(cluster=judged["item"].astype(str).map(_clusters(study, settings)))
    rows = ScoringRun.objects.of(study).values_list(*RUN)
    runs = pd.DataFrame.from_records(list(rows), columns=RUN)
    scores = score_frame(study).merge(runs, on=["metric", "signature"])
    # An unknown name would silently leave no metrics to test.
    metrics = sorted(set(runs["metric"]))
    if unknown := [name for name in settings.primary if name not in metrics]:
        raise PrimaryUnknown(unknown, metrics)
    ordinal = study.questions.filter(level=Question.Level.ORDINAL).values_list("name", flat=True)
    design = _design(study, settings)
    sources = tuple(
        LabelSourceRecord(
            question=label_set.question.name,
            version=label_set.version,
            signature=label_set.signature,
            n_labels=label_set.n_labels,
            n_adjudicated=label_set.n_adjudicated,
        )
        for label_set in sets
    )
    return Material(judged, scores, _labels(sets), sources, ordinal, design)


def _design(study: Study, settings: Settings) -> Design | None:
    batches = sample_design(study, settings.round)
    if batches.empty:
        return None
    columns = {"item": "item__key", "candidate": "key", "system": "system"}
    rows = Candidate.objects.filter(item__study=study).order_by("item__position", "item", "pk")
    candidates = pd.DataFrame.from_records(
        list(rows.values_list(*columns.values())), columns=list(columns)
    )
    if settings.cluster:
        candidates = candidates.assign(cluster=candidates["item"].map(_clusters(study, settings)))
    return Design(batches, candidates)


def _clusters(study: Study, settings: Settings) -> dict[str, str]:
    rows = study.items.values_list("key", "context")
    if settings.cluster == "context":
        return {key: context or key for key, context in rows}
    if settings.cluster == "column":
        raise ClustersUnfit("A study's items have no column; cluster by context or key:CHARACTER.")
    separator = settings.cluster.removeprefix("key:")
    clusters = {key: key.rpartition(separator)[0] or key for key, _ in rows}
    if len(set(clusters.values())) == len(clusters):
        raise ClustersUnfit(f"No two items' keys are equal up to their last '{separator}'.")
    return clusters


def _require_both(study: Study, settings: Settings) -> None:
    judgments = Judgment.objects.of(study).filter(submission__round=settings.round)
    if settings.judgments == "accepted":
        judgments = judgments.accepted()
    of_version = ""
    if settings.protocol is not None:
        judgments = judgments.filter(
            submission__protocol=numbered_version(study, settings.protocol)
        )
        of_version = f" under version {settings.protocol} of its protocol"
    if not judgments.exists():
        raise NothingToValidate(
            f"Study '{study.slug}' has no judgments in round {settings.round}{of_version} yet, "
            "or only rejected ones.",
            code="no_judgments",
        )
    if not Score.objects.filter(run__study=study).exists():
        raise NothingToValidate(
            f"Study '{study.slug}' has no scores; score it or import some.", code="no_scores"
        )


def _label_sets(study: Study, settings: Settings) -> list[LabelSet]:
    if settings.labels and settings.protocol is not None:
        raise LabelsUnfit(
            "Labels are of all versions of the protocol; name labels or a version.",
            code="labels_and_protocol",
        )
    known = LabelSet.objects.of(study).select_related("question")
    sets = [known.numbered(version) for version in settings.labels]
    [[question, count]] = Counter(one.question.name for one in sets).most_common(1) or [("", 0)]
    if count > 1:
        raise LabelsUnfit(
            f"Question '{question}' was given {count} label sets; name one of them.",
            code="several_label_sets",
        )
    for one in sets:
        if one.round != settings.round:
            raise LabelsUnfit(
                f"Labels {one.version} are of round {one.round}, and the validation is of round "
                f"{settings.round}; validate round {one.round}, or name labels of the other.",
                code="other_round",
            )
    return sets


def _labels(sets: list[LabelSet]) -> pd.DataFrame | None:
    if not sets:
        return None
    rows = Label.objects.filter(label_set__in=sets).values_list(
        "label_set__question__name", "candidate__item__key", "candidate__key", "value"
    )
    return pd.DataFrame.from_records(list(rows), columns=["question", "item", "candidate", "value"])


class ClustersUnfit(MetricsError):
    """No clusters can be derived for the study's items."""


class LabelsUnfit(MetricsError):
    """Two label sets of one question, or one of another round."""


class PrimaryUnknown(MetricsError):
    def __init__(self, unknown: Sequence[str], known: Sequence[str]) -> None:
        self.unknown, self.known = list(unknown), list(known)
        super().__init__(
            f"The study has no scores of {', '.join(unknown)}; the family of tests can name the "
            f"metrics with scores: {', '.join(known)}."
        )
