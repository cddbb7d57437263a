"""What fits: how many marks a picture draws one by one, and how names and widths are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt


# Beyond so many columns the numbers in the cells of a matrix would not fit.
MOST_WITH_NUMBERS = 14
# Beyond so many points a cloud says less than the counts of its parts, and weighs more.
MOST_POINTS = 2000
N_BINS = 40
# So many lines can be distinguished by colour.
MOST_COLOURS = 6


def column_axis(has_room: bool) -> alt.Axis:
    """The names above a matrix's columns, upright where these are narrow."""
    import altair as alt

    angle = -30 if has_room else -90
    return alt.Axis(ticks=False, domain=False, orient="top", labelAngle=angle)
