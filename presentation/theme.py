"""One look for every chart, on a page in light or dark and in a paper.

A picture is a function from a frame to an `alt.Chart` without colours of its own ground;
`themed` gives it the look's tokens. Page and paper show the same specification.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from presentation.libraries import alt

Form = Literal["svg", "png", "pdf"]
if TYPE_CHECKING:
    Picture: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
else:
    Picture = Any
# The page's width, and as much height as the rows need.
FILLING: Any = {"type": "fit-x", "contains": "padding"}

# Okabe and Ito's palette, distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, YELLOW = "#56B4E9", "#D55E00", "#F0E442"
OKABE_ITO = [BLUE, ORANGE, GREEN, PURPLE, SKY, RED, YELLOW]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
PNG_SCALE = 2.0
# Wide enough for a column of a paper; a page gives charts its own width.
WIDTH = 560
# A phone's page holds so many characters of an axis title side by side.
TITLE_WIDTH = 46


@dataclass(frozen=True)
class Tokens:
    ground: str
    text: str
    muted: str
    line: str
    low: str
    middle: str


LIGHT = Tokens("#ffffff", "#1d2329", "#5a6570", "#dfe3e8", RED, "#f6f7f9")
DARK = Tokens("#14171a", "#e6e9ec", "#9aa5b1", "#2e353c", RED, "#1c2126")
TOKENS = {"light": LIGHT, "dark": DARK}


def height_of_rows(n_rows: int, n_parts: int, *, step: int) -> float:
    """Of a chart that fills its container's width, in pixels, with `n_parts` marks in a row.

    A height in steps would end the filling: Vega-Lite fits to a number alone, and warns.
    """
    # Vega-Lite leaves a fifth of a row between rows of several parts.
    return n_rows * (28 if n_parts < 2 else n_parts * step / 0.8)


def axis_title(title: str) -> list[str]:
    return textwrap.wrap(title, TITLE_WIDTH)


def themed(chart: Picture, tokens: Tokens = LIGHT) -> dict[str, Any]:
    config = {
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": tokens.text,
            "titleColor": tokens.muted,
            "gridColor": tokens.line,
            "domainColor": tokens.muted,
            "tickColor": tokens.muted,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "labelLimit": 220,
        },
        # Over the names left of a narrow plot a title has room; right of it, it would be cut.
        "axisBottom": {"titleAnchor": "end"},
        "header": {"labelColor": tokens.text, "titleColor": tokens.muted, "labelFontSize": 13},
        "legend": {
            "labelColor": tokens.text,
            "titleColor": tokens.muted,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
        },
        "range": {
            "category": [*OKABE_ITO, tokens.text],
            # From disagreement through chance to agreement, with the ground as the middle.
            "diverging": [tokens.low, tokens.middle, BLUE],
        },
        "rule": {"color": tokens.muted},
        "text": {"color": tokens.text, "fontSize": 13},
        "point": {"filled": True, "size": 60},
        "mark": {"color": BLUE if tokens is LIGHT else SKY},
    }
    return {**chart.to_dict(), "background": tokens.ground, "config": config}


def rendered(spec: dict[str, Any], form: Form) -> bytes:
    # Loads an engine of its own, which the pages that only show specifications do without.
    import vl_convert

    sized = spec | {"width": WIDTH} if spec.get("width") == "container" else spec
    if form == "svg":
        return vl_convert.vegalite_to_svg(sized).encode()
    if form == "pdf":
        return vl_convert.vegalite_to_pdf(sized)
    return vl_convert.vegalite_to_png(sized, scale=PNG_SCALE)


# Where a cell is so dark that the text on it must be light, in either theme.
DARK_FROM = 0.8


def numbers(cells: alt.Chart, *, size: int) -> list[alt.Chart]:
    """The cells' defined values, in white where the cell is dark."""
    marks: list[alt.Chart] = []
    for operator, ink in (("<=", alt.Undefined), (">", "white")):
        mark = cells.transform_filter(
            f"isValid(datum.value) && abs(datum.value) {operator} {DARK_FROM}"
        ).mark_text(color=ink, fontSize=size)
        marks.append(mark.encode(text=alt.Text("value:Q", format=".2f")))
    return marks


def signed_colour(title: str) -> alt.Color:
    """The colour of a cell whose value is from -1 to 1; what is below zero has the other end's."""
    return alt.Color(
        "value:Q",
        title=title,
        legend=alt.Legend(orient="bottom", values=[-1, 0, 1], titleLimit=320),
        scale=alt.Scale(domain=[-1, 0, 1], range="diverging", interpolate="rgb"),
    )
