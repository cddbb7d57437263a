"""Pictures of what studies of dialogues say, each of rows with names that a reader knows."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from console.chart_values import range_in_words
from presentation.numbers import format_number
from presentation.theme import FILLING, Picture, axis_title, height_of_rows

if TYPE_CHECKING:
    import pandas as pd

    from results.tables import Record


TICKS: Any = {"tickCount": 5}
# Choices tell users apart: each has a line of its own, and what is longer than a telephone is wide
# goes on below.
CHOICE_ENDS, LINE_ENDS = ", ", "\n"
NAME_WIDTH = 24
LINES = r"split(datum.label, '\n')"
NAMES: Any = {"labelExpr": LINES, "labelLimit": 260}
LEGEND: Any = {"orient": "top", "columns": 1, "labelExpr": LINES, "labelLimit": 260}


def in_lines(name: str) -> str:
    """A name in as many lines as a narrow page needs."""
    choices = name.split(CHOICE_ENDS)
    return LINE_ENDS.join(line for one in choices for line in textwrap.wrap(one, NAME_WIDTH))


def spans_figure(rows: pd.DataFrame, axis: str, *, reference: float | None = None) -> Picture:
    """A point with its interval for each `name`, in their order; a line at a `reference`."""
    import altair as alt
    import pandas as pd

    rows = rows.assign(name=rows["name"].map(in_lines))
    names = list(dict.fromkeys(rows["name"]))
    title = axis_title(axis)
    base = alt.Chart(rows).encode(y=alt.Y("name:N", title=None, sort=names, axis=NAMES))
    spans = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    points = base.mark_point(opacity=1, filled=True, size=60).encode(
        x=alt.X("value:Q", title=title, axis=TICKS)
    )
    layers = [spans.encode(x=alt.X("ci_low:Q", title=title), x2="ci_high:Q"), points]
    if reference is not None:
        line = alt.Chart(pd.DataFrame({"value": [reference]}))
        layers.insert(0, line.mark_rule(strokeDash=[4, 3]).encode(x="value:Q"))
    n_lines = max((1 + name.count(LINE_ENDS) for name in names), default=1)
    height = height_of_rows(len(names), 1, step=16) + 14 * (n_lines - 1) * len(names)
    return alt.layer(*layers).properties(width="container", height=height, autosize=FILLING)


def tabulate_outcomes(record: Record) -> tuple[pd.DataFrame, list[str]]:
    """Each recommender's outcome with people and with each user, and the names of these."""
    import pandas as pd

    people = _("people")
    rows = [
        {"recommender": one["recommender"] or _("an item at random"), "who": people}
        | {name: one[name] for name in ("value", "ci_low", "ci_high")}
        for one in (*record["recommenders"], record["item_at_random"])
    ]
    with_people = {one["recommender"]: one["value"] or 0.0 for one in record["recommenders"]}
    rows += [
        {
            "recommender": one["recommender"],
            "who": one["user"],
            "value": with_people[one["recommender"]] + (one["bias"] or 0.0),
            "ci_low": None,
            "ci_high": None,
        }
        for one in record["biases"]
    ]
    return pd.DataFrame(rows), [people, *record["users"]]


def describe_outcomes(outcomes: pd.DataFrame, people: str) -> str:
    """Of each recommender the share with people, and those with simulated users."""
    is_people = outcomes["who"] == people
    simulated = outcomes[~is_people].groupby("recommender", sort=False)["value"]
    ranges = {name: range_in_words(values) for name, values in simulated}
    said = []
    for row in outcomes[is_people].to_dict(orient="records"):
        name, users = row["recommender"], ranges.get(row["recommender"])
        text = _("{name}: people {people}, simulated users {users}")
        if users is None:
            text = _("{name}: people {people}")
        said.append(text.format(name=name, people=format_number(row["value"]), users=users))
    return "{values}.".format(values="; ".join(said))


def outcomes_figure(rows: pd.DataFrame, whose: list[str]) -> Picture:
    """The outcome of each `recommender` with people and with simulated users, by `who`."""
    import altair as alt

    rows = rows.assign(who=rows["who"].map(in_lines))
    whose = [in_lines(one) for one in whose]
    names = list(dict.fromkeys(rows["recommender"]))
    title = axis_title(_("Share whose final item would do"))
    base = alt.Chart(rows).encode(
        y=alt.Y("recommender:N", title=None, sort=names),
        yOffset=alt.YOffset("who:N", sort=whose),
        color=alt.Color("who:N", title=None, sort=whose, legend=LEGEND),
    )
    spans = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    points = base.mark_point(opacity=1, filled=True, size=60).encode(
        x=alt.X("value:Q", title=title, axis=TICKS)
    )
    layers = [spans.encode(x=alt.X("ci_low:Q", title=title), x2="ci_high:Q"), points]
    height = height_of_rows(len(names), len(whose), step=16)
    return alt.layer(*layers).properties(width="container", height=height, autosize=FILLING)
