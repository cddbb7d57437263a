"""A comparison of qrels as text."""

from presentation.text_tables import text_table
from retrieval.rankings.assessor_records import (
    AssessorsAgreement,
    CrossedMean,
    LabelComparison,
    RandomDesign,
)
from retrieval.rankings.records import LabelSet, QrelsComparison, Ranking, RankingComparison
from stats.agreement import Agreement
from stats.agreement.overlap import LabelOverlap
from stats.ranking.resampled_topics import RankingSimilarity

QRELS = ("qrels", "kind", "topics", "judged", "relevant", "rule")
RANKINGS = ("measure", "qrels", "runs, the best first")
PAIRS = ("measure", "qrels", "tau-b", "tau_AP", "RBO", "RBO min", "residual")
CHANGES = ("measure", "qrels", "swapped", "of them significant")
KINDS = ("kept", "lost", "gained", "reversed", "neither")
LABELS = ("qrels", "topics", "documents", "overlap", "kappa")
ASSESSORS = ("assessors", "documents", "overlap of any two", "Krippendorff's alpha")
DRAWS = ("measure", "one assessor a topic", "tau-b", "5 %", "median", "95 %", "most often swapped")
CROSSED = ("measure", "run", "mean", "topics x assessors", "both resampled", "assessors")


def as_text(compared: QrelsComparison) -> str:
    """Tables of the sets, rankings, pairs of them, labels and assessors, and the notes."""
    parts = [
        text_table(QRELS, [_set(each) for each in compared.qrels]),
        text_table(RANKINGS, [_ranking(each) for each in compared.rankings]),
        text_table(PAIRS, [_pair(each) for each in compared.pairs]),
    ]
    if top := compared.settings.top:
        header = ("measure", "qrels", f"tau-b of the best {top}")
        rows_of_top = [
            (*_between(each), _value(each.top)) for each in compared.pairs if each.top is not None
        ]
        parts.append(text_table(header, rows_of_top))
    parts.append(text_table((*CHANGES, *KINDS), [_changes(each) for each in compared.pairs]))
    if compared.labels:
        parts.append(text_table(LABELS, [_labels(each) for each in compared.labels]))
    if compared.assessors:
        parts.append(text_table(ASSESSORS, [_assessors(compared.assessors)]))
    if compared.random_assessor:
        parts.append(text_table(DRAWS, [_design(each) for each in compared.random_assessor]))
    if compared.crossed:
        parts.append(text_table(CROSSED, [_crossed(each) for each in compared.crossed]))
    if compared.notes:
        parts.append("\n".join(f"Note: {note}." for note in compared.notes))
    return "\n\n".join(parts)


def _set(one: LabelSet) -> tuple[str, ...]:
    counts = (one.n_topics, one.n_judged, one.n_relevant)
    return one.name, one.kind, *(str(count) for count in counts), one.rule


def _ranking(one: Ranking) -> tuple[str, ...]:
    systems = ", ".join(f"{each.rank} {each.run} {each.mean:.4f}" for each in one.systems)
    return one.measure.name, one.qrels, systems


def _between(one: RankingComparison) -> tuple[str, str]:
    return one.measure.name, f"{one.first} - {one.second}"


def _pair(one: RankingComparison) -> tuple[str, ...]:
    values = (_value(each) for each in (one.tau_b, one.tau_ap, one.rbo))
    bounds = one.rbo_bounds
    return *_between(one), *values, f"{bounds.min:.3f}", f"{bounds.residual:.3f}"


def _changes(one: RankingComparison) -> tuple[str, ...]:
    changes = one.changes()
    counts = (len(one.swapped), one.n_swapped_significantly, *changes.values())
    return *_between(one), *(str(count) for count in counts)


def _labels(one: LabelComparison) -> tuple[str, ...]:
    counts = str(one.n_topics), str(one.overlap.n_items)
    return f"{one.first} - {one.second}", *counts, _value(one.overlap), _value(one.kappa)


def _assessors(one: AssessorsAgreement) -> tuple[str, ...]:
    counts = str(one.n_assessors), str(one.alpha.n_items)
    return *counts, _value(one.overlap), _value(one.alpha)


def _design(one: RandomDesign) -> tuple[str, ...]:
    tau = one.record()["tau_b"]
    shares = (_number(tau[name]) for name in ("mean", "q05", "median", "q95"))
    swaps = sorted(one.swaps(), key=lambda swap: -swap[2])[:3]
    often = ", ".join(f"{a} > {b} {share:.0%}" for a, b, share in swaps)
    return one.measure.name, f"{len(one.drawn.tau):,} draws, to the {one.merged}", *shares, often


def _crossed(one: CrossedMean) -> tuple[str, ...]:
    mean = one.mean
    limits = f"[{one.bootstrap_low:.4f}, {one.bootstrap_high:.4f}]"
    return (
        one.measure.name,
        one.run,
        f"{mean.value:.4f}",
        f"[{mean.ci_low:.4f}, {mean.ci_high:.4f}]" if mean.ci_low == mean.ci_low else "none",
        limits if one.bootstrap_low == one.bootstrap_low else "none",
        str(mean.n_annotators),
    )


def _value(one: RankingSimilarity | LabelOverlap | Agreement) -> str:
    if one.value != one.value:
        return f"undefined: {one.reason}"
    limits = (
        f" [{one.ci_low:.3f}, {one.ci_high:.3f}]" if one.ci_low == one.ci_low else " (no interval)"
    )
    return f"{one.value:.3f}{limits}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
