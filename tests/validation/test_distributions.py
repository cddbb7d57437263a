"""Into what a question's judgments are counted, system by system."""

import pandas as pd
import pytest

from validation.analysis.human_results import QuestionScale, question_result


def judgments(values: list[float]) -> pd.DataFrame:
    rows = range(len(values))
    return pd.DataFrame(
        {
            "item": [f"item {row // 2}" for row in rows],
            "candidate": [f"candidate {row}" for row in rows],
            "system": ["meadow", "harbour"] * (len(values) // 2),
            "annotator": "ann",
            "value": values,
        }
    )


def counts(scale: QuestionScale, values: list[float]) -> list[tuple[str, int]]:
    bins = question_result(scale, judgments(values), []).bins
    return [(one.label, one.n) for one in bins if one.system == "meadow"]


@pytest.mark.parametrize("level", ["interval", "ordinal"])
def test_whole_numbers_of_a_short_scale_have_a_bin_each(level: str) -> None:
    """Tenths of seven values would leave gaps that nobody answered around."""
    scale = QuestionScale("quality", "line", level, 1.0, 7.0)
    answered = counts(scale, [1, 2, 3, 2, 7, 2, 7, 2])
    assert answered == [
        ("1", 1), ("2", 0), ("3", 1), ("4", 0), ("5", 0), ("6", 0), ("7", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(("high", "values"), [(7.0, [1.5, 2, 3, 2]), (100.0, [20, 30, 40, 50])])
def test_other_values_are_counted_by_tenths_of_the_scale(high: float, values: list[float]) -> None:
    assert len(counts(QuestionScale("quality", "line", "interval", 1.0, high), values)) == 10
