"""One look, in light and dark, and as a file of each form."""

import pandas as pd
import pytest

from annotation.charts.agreement import agreement_forest
from presentation.theme import DARK, LIGHT, OKABE_ITO, axis_title, rendered, themed

ROWS = pd.DataFrame(
    [
        {
            "label": "empathy",
            "part": "all",
            "value": 0.4,
            "ci_low": 0.3,
            "ci_high": 0.5,
            "n_items": 80,
        }
    ]
)


@pytest.mark.parametrize("tokens", [LIGHT, DARK])
def test_a_chart_takes_the_looks_colours(tokens):
    spec = themed(agreement_forest(ROWS), tokens)
    assert "url" not in repr(spec).replace("schema", "")
    assert spec["background"] == tokens.ground
    assert spec["config"]["axis"]["labelColor"] == tokens.text
    assert spec["config"]["range"]["category"][: len(OKABE_ITO)] == OKABE_ITO


def test_a_long_axis_title_takes_several_lines():
    assert axis_title("Judgments given") == ["Judgments given"]
    title = "Pairwise accuracy with calibrated ties, by item, with its interval"
    assert " ".join(axis_title(title)) == title
    assert len(axis_title(title)) == 2


@pytest.mark.parametrize(
    ("form", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_a_chart_is_a_file_of_every_form(form, begins):
    content = rendered(themed(agreement_forest(ROWS)), form)
    assert content.startswith(begins)
    assert len(content) > 1000
    # The words of a vector graphic can be read.
    assert form != "svg" or b"empathy" in content
