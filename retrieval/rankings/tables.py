"""A comparison of qrels as text."""

from presentation.documents import Cell, Number, add_interval
from presentation.text_tables import text_report, text_table
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
CROSSED = ("measure", "run", "mean, topics x assessors", "both resampled", "assessors")


def comparison_text(compared: QrelsComparison) -> str:
    """Tables of the sets, rankings, pairs of them, labels and assessors, and the notes."""
    pairs, top = compared.pairs, compared.settings.top
    parts = [
        text_table(QRELS, map(_set, compared.qrels)),
        text_table(RANKINGS, map(_ranking, compared.rankings)),
        text_table(PAIRS, map(_pair, pairs)),
    ]
    if top:
        rows = [(*_names(each), _value(each.top)) for each in pairs if each.top is not None]
        parts.append(text_table(("measure", "qrels", f"tau-b of the best {top}"), rows))
    parts.append(text_table((*CHANGES, *KINDS), map(_changes, pairs)))
    if compared.labels:
        parts.append(text_table(LABELS, map(_labels, compared.labels)))
    if compared.assessors:
        parts.append(text_table(ASSESSORS, [_assessors(compared.assessors)]))
    if compared.random_assessor:
        parts.append(text_table(DRAWS, map(_design, compared.random_assessor)))
    if compared.crossed:
        parts.append(text_table(CROSSED, map(_crossed, compared.crossed)))
    return text_report(parts, compared.notes)


def _set(one: LabelSet) -> tuple[Cell, ...]:
    return one.name, one.kind, one.n_topics, one.n_judged, one.n_relevant, one.rule


def _ranking(one: Ranking) -> tuple[Cell, ...]:
    systems = ", ".join(f"{each.rank} {each.run} {each.mean:.4f}" for each in one.systems)
    return one.measure.name, one.qrels, systems


def _names(one: RankingComparison) -> tuple[str, str]:
    return one.measure.name, f"{one.first} - {one.second}"


def _pair(one: RankingComparison) -> tuple[Cell, ...]:
    values = map(_value, (one.tau_b, one.tau_ap, one.rbo))
    bounds = one.rbo_bounds
    return *_names(one), *values, Number(bounds.min, 3), Number(bounds.residual, 3)


def _changes(one: RankingComparison) -> tuple[Cell, ...]:
    return *_names(one), len(one.swapped), one.n_swapped_significantly, *one.changes().values()


def _labels(one: LabelComparison) -> tuple[Cell, ...]:
    counts = one.n_topics, one.overlap.n_items
    return f"{one.first} - {one.second}", *counts, _value(one.overlap), _value(one.kappa)


def _assessors(one: AssessorsAgreement) -> tuple[Cell, ...]:
    return one.n_assessors, one.alpha.n_items, _value(one.overlap), _value(one.alpha)


def _design(one: RandomDesign) -> tuple[Cell, ...]:
    tau = one.record()["tau_b"]
    shares = (Number(tau[name], 3) for name in ("mean", "q05", "median", "q95"))
    swaps = sorted(one.swaps(), key=lambda swap: -swap[2])[:3]
    often = ", ".join(f"{a} > {b} {share:.0%}" for a, b, share in swaps)
    return one.measure.name, f"{len(one.drawn.tau):,} draws, to the {one.merged}", *shares, often


def _crossed(one: CrossedMean) -> tuple[Cell, ...]:
    mean = one.mean
    resampled = Number(mean.value, 4, one.bootstrap_low, one.bootstrap_high)
    crossed = Number(mean.value, 4, mean.ci_low, mean.ci_high)
    return one.measure.name, one.run, crossed, resampled, mean.n_annotators


def _value(one: RankingSimilarity | LabelOverlap | Agreement) -> Number:
    return add_interval(one.value, one, 3)
