"""The numbers in the cells of a matrix whose colours go from -1 over 0 to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt


# Where a cell is so dark that the text on it must be light, in either theme.
DARK_FROM = 0.8


def numbers(cells: alt.Chart, *, size: int) -> list[alt.Chart]:
    """The cells' defined values, in white where the cell is dark."""
    import altair as alt

    marks: list[alt.Chart] = []
    for operator, ink in (("<=", alt.Undefined), (">", "white")):
        predicate = f"isValid(datum.value) && abs(datum.value) {operator} {DARK_FROM}"
        mark = cells.transform_filter(predicate).mark_text(color=ink, fontSize=size)
        marks.append(mark.encode(text=alt.Text("value:Q", format=".2f")))
    return marks


def signed_colour(title: str) -> alt.Color:
    """The colour of a cell whose value is from -1 to 1; what is below zero has the other end's."""
    import altair as alt

    return alt.Color(
        "value:Q",
        title=title,
        legend=alt.Legend(orient="bottom", values=[-1, 0, 1], titleLimit=320),
        scale=alt.Scale(domain=[-1, 0, 1], range="diverging", interpolate="rgb"),
    )
