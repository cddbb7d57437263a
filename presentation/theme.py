"""One look for every chart, on a page in light or dark and in a paper.

A picture is a function from a frame to an `alt.Chart`; `themed` gives it fonts, lines and colors.
Page and paper show the same specification.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from presentation.libraries import alt

Form = Literal["svg", "png", "pdf"]
if TYPE_CHECKING:
    Picture: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
else:
    Picture = Any
# The page's width, and as much height as the rows need.
FILLING: Any = {"type": "fit-x", "contains": "padding"}

# Light values of static/tokens.css, which a file that is downloaded has. After Okabe and Ito's
# palette: distinguishable with any kind of color vision, and on white.
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#bd5200", "#008561", "#a84c85"
SERIES = [BLUE, ORANGE, GREEN, PURPLE, OCHRE := "#8f6400", GRAY := "#5d6a72"]
GROUND, TEXT, MUTED, GRID, ZERO = "#ffffff", "#142024", "#526067", "#e6ebec", "#7e8b91"
# A value to compare with, such as a ceiling.
GOLD = "#b27a12"
# The first color of a series, mixed with the ground.
HALF, FIFTH = "#73b3d8", "#cce3f0"
TOKENS = {
    **{color: f"var(--series-{number})" for number, color in enumerate(SERIES, 1)},
    GROUND: "var(--ground)",
    TEXT: "var(--text)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    ZERO: "var(--zero)",
    GOLD: "var(--gold)",
    HALF: "color-mix(in srgb, var(--series-1) 55%, var(--ground))",
    FIFTH: "color-mix(in srgb, var(--series-1) 20%, var(--ground))",
}
FONT = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
PNG_SCALE = 2.0
# Wide enough for a column of a paper; a page gives charts its own width.
WIDTH = 560
# A phone's page holds so many characters of an axis title side by side.
TITLE_WIDTH = 46


def height_of_rows(n_rows: int, n_parts: int, *, step: int) -> float:
    """Of a chart that fills its container's width, in pixels, with `n_parts` marks in a row.

    A height in steps would end the filling: Vega-Lite fits to a number alone, and warns.
    """
    # Vega-Lite leaves a fifth of a row between rows of several parts.
    return n_rows * (28 if n_parts < 2 else n_parts * step / 0.8)


def axis_title(title: str) -> list[str]:
    return textwrap.wrap(title, TITLE_WIDTH)


def themed(chart: Picture, *, is_on_page: bool = False) -> dict[str, Any]:
    """The chart's specification; on a page its colors are those of the page, light or dark."""
    spec = chart.to_dict()
    datasets = spec.pop("datasets", {})
    config = {
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": TEXT,
            "titleColor": MUTED,
            "gridColor": GRID,
            "domainColor": ZERO,
            "tickColor": ZERO,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "labelLimit": 220,
        },
        # Over the names left of a narrow plot a title has room; right of it, it would be cut.
        "axisBottom": {"titleAnchor": "end"},
        "header": {"labelColor": TEXT, "titleColor": MUTED, "labelFontSize": 13},
        "legend": {
            "labelColor": TEXT,
            "titleColor": MUTED,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
        },
        "range": {
            "category": SERIES,
            # From disagreement through chance to agreement, with the ground as the middle. Colors
            # that Vega mixes are no variables of a page; they are mixed in light and dark alike.
            "diverging": ["rgb(189, 82, 0)", "transparent", "rgb(0, 114, 178)"],
        },
        "rule": {"color": ZERO},
        "text": {"color": TEXT, "fontSize": 13},
        "point": {"filled": True, "size": 60},
        "mark": {"color": BLUE},
    }
    spec |= {"background": GROUND, "config": config}
    if is_on_page:
        text = json.dumps(spec)
        for color, token in TOKENS.items():
            text = text.replace(f'"{color}"', f'"{token}"')
        spec = json.loads(text)
    return spec | {"datasets": datasets}


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
