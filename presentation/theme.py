"""One look for every chart, on a page in light or dark and in a paper.

A picture is a function from a frame to an `alt.Chart`; `themed` gives it fonts, lines and colors.
Page and paper show the same specification.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from presentation.libraries import alt

Form = Literal["svg", "png", "pdf"]
if TYPE_CHECKING:
    Picture: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
else:
    Picture = Any
# The page's width, and as much height as the rows need.
FILLING: Any = {"type": "fit-x", "contains": "padding"}

# Files that are downloaded have the light colors of pages; a page has variables in their place.
LIGHT_TOKENS = re.sub(
    r"light-dark\((.+?), .+?\)",
    r"\1",
    (Path(__file__).parents[1] / "static" / "tokens.css").read_text("utf-8"),
)
COLORS = dict(re.findall(r"--([\w-]+): (#\w{6})", LIGHT_TOKENS))
BLUE, ORANGE, GREEN, PURPLE, OCHRE, GRAY = SERIES = [COLORS[f"series-{n}"] for n in range(1, 7)]
GROUND, TEXT, MUTED, GRID, ZERO, GOLD = (
    COLORS[name] for name in ("ground", "text", "muted", "grid", "zero", "gold")
)
# The first color of a series, mixed with the ground.
HALF, FIFTH = "#73b3d8", "#cce3f0"
VARIABLES = {
    # Of several names for one color the first.
    **{color: f"var(--{name})" for name, color in reversed(COLORS.items())},
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
        for color, variable in VARIABLES.items():
            text = text.replace(f'"{color}"', f'"{variable}"')
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
