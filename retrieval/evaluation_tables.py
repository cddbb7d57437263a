"""An evaluation of runs as text."""

from collections.abc import Iterator

from presentation.documents import Cell, Number, P, add_interval
from presentation.text_tables import text_report, text_table
from retrieval.evaluation_records import Evaluation, RunsCompared, RunValues

RESULTS = ("run", "measure", "mean", "judged", "topics", "complete")
COMPARISONS = ("measure", "runs", "delta", "test", "p", "p (Holm)")


def evaluation_text(evaluation: Evaluation) -> str:
    """A table of the means, one of the comparisons, the groups and the notes."""
    parts = [text_table(RESULTS, map(_result, evaluation.results))]
    if evaluation.comparisons:
        parts.append(text_table(COMPARISONS, map(_comparison, evaluation.comparisons)))
        parts.append("\n".join(_groups(evaluation)))
    return text_report(parts, evaluation.notes)


def _result(row: RunValues) -> tuple[Cell, ...]:
    return (
        row.run,
        row.measure.name,
        add_interval(row.mean.value, row.mean, 4),
        Number(row.judged, 4),
        row.mean.n_topics,
        Number(row.mean_complete, 4),
    )


def _comparison(row: RunsCompared) -> tuple[Cell, ...]:
    one = row.difference
    delta = add_interval(one.delta, one, 4, is_signed=True)
    return row.measure.name, f"{row.a} - {row.b}", delta, one.test, P(one.p), P(row.p_adjusted)


def _groups(evaluation: Evaluation) -> Iterator[str]:
    """One line a measure, the best runs first; groups that differ are apart."""
    for measure in evaluation.settings.primary or evaluation.settings.measures:
        groups = " > ".join(", ".join(group) for group in evaluation.groups(measure))
        yield f"{measure.name}: {groups}"
