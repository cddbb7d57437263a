"""An evaluation of runs as text."""

from collections.abc import Iterator

from presentation.text_tables import text_table
from retrieval.evaluation_records import Evaluation, RunsCompared, RunValues

RESULTS = ("run", "measure", "mean", "interval", "judged", "topics", "complete")
COMPARISONS = ("measure", "runs", "delta", "interval", "test", "p", "p (Holm)")


def as_text(evaluation: Evaluation) -> str:
    """A table of the means, one of the comparisons, the groups and the notes."""
    parts = [text_table(RESULTS, [_result(row) for row in evaluation.results])]
    if evaluation.comparisons:
        parts.append(text_table(COMPARISONS, [_comparison(row) for row in evaluation.comparisons]))
        parts.append("\n".join(_groups(evaluation)))
    if evaluation.notes:
        parts.append("\n".join(f"Note: {note}." for note in evaluation.notes))
    return "\n\n".join(parts)


def _result(row: RunValues) -> tuple[str, ...]:
    mean = row.mean
    return (
        row.run,
        row.measure.name,
        _number(mean.value),
        _interval(mean.ci_low, mean.ci_high, mean.reason),
        _number(row.judged),
        str(mean.n_topics),
        _number(row.mean_complete),
    )


def _comparison(row: RunsCompared) -> tuple[str, ...]:
    one = row.difference
    return (
        row.measure.name,
        f"{row.a} - {row.b}",
        _number(one.delta, sign=True),
        _interval(one.ci_low, one.ci_high, one.reason),
        one.test,
        _p(one.p),
        _p(row.p_adjusted),
    )


def _groups(evaluation: Evaluation) -> Iterator[str]:
    """One line a measure, the best runs first; groups that differ are apart."""
    for measure in evaluation.settings.primary or evaluation.settings.measures:
        groups = " > ".join(", ".join(group) for group in evaluation.groups(measure))
        yield f"{measure.name}: {groups}"


def _number(value: float, *, sign: bool = False) -> str:
    if value != value:
        return "undefined"
    return f"{value:+.4f}" if sign else f"{value:.4f}"


def _interval(low: float, high: float, reason: str | None) -> str:
    return f"[{low:.4f}, {high:.4f}]" if low == low else f"none: {reason}"


def _p(value: float) -> str:
    if value != value:
        return ""
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")
