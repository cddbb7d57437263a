"""Charts of experiments, like the article's figures 6 to 8, and of recorded dialogues' reports."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _

from console.chart_values import range_in_words
from presentation.libraries import alt
from presentation.numbers import format_number
from presentation.theme import FILLING, Picture, axis_title, height_of_rows
from results.kinds import Record
from simulation.experiments import Experiment
from simulation.users import MetaUser
from stats.libraries import pd
from stats.ranking import Measure

# Of a design, or stored with a run.
AnyUser = MetaUser | SimpleNamespace
# Recommenders side by side, of the width that a page has.
N_COLUMNS = 3
# Of the theme's colours; with more lines, twenty that are less far apart.
N_COLOURS = 6
# Names of users are long, and tell users apart by their end.
LEGEND: Any = {"orient": "bottom", "columns": 2, "labelLimit": 0, "symbolOpacity": 1}


def by_turn(experiment: Experiment, measure: Measure) -> Picture:
    rows = pd.DataFrame([row.record() for row in experiment.rows() if row.measure == measure])
    return turns_figure(rows, measure.name, [user.name for user in experiment.users])


def turns_figure(rows: pd.DataFrame, measure: str, names: list[str]) -> Picture:
    """Columns: recommender, user, turn, mean, ci_low and ci_high."""
    colour = alt.Color("user:N", title=None, sort=names, legend=LEGEND, **_wider(len(names)))
    base = alt.Chart(rows).encode(x=alt.X("turn:O", title=_("Turn"), axis=alt.Axis(labelAngle=0)))
    band = base.mark_area(opacity=0.12).encode(
        y=alt.Y("ci_low:Q", title=measure),
        y2="ci_high:Q",
        color=colour,
    )
    line = base.mark_line(point=True).encode(
        y=alt.Y("mean:Q", title=measure),
        color=colour,
        tooltip=[
            alt.Tooltip("user:N", title=_("User")),
            alt.Tooltip("turn:O", title=_("Turn")),
            alt.Tooltip("mean:Q", format=".3f", title=measure),
        ],
    )
    return _facets(alt.layer(band, line).properties(width=220, height=200), rows)


def by_tolerance(experiment: Experiment, measure: Measure) -> Picture:
    return _against(experiment, measure, "tolerance", _("Tolerance, turns"), ("tol", "prob"))


def by_p_switch(experiment: Experiment, measure: Measure) -> Picture:
    return _against(experiment, measure, "p_switch", _("Probability of switching"), ("prob",))


def pictures(experiment: Experiment) -> dict[str, Picture]:
    users = [user for user in experiment.users if isinstance(user, MetaUser)]
    charts: dict[str, Picture] = {}
    for measure in experiment.settings.measures:
        charts[f"turns-{measure.name}"] = by_turn(experiment, measure)
        if has_several(users, "tolerance"):
            charts[f"tolerance-{measure.name}"] = by_tolerance(experiment, measure)
        if has_several(users, "p_switch"):
            charts[f"p-switch-{measure.name}"] = by_p_switch(experiment, measure)
    return charts


def _against(
    experiment: Experiment, measure: Measure, field: str, title: str, kinds: tuple[str, ...]
) -> Picture:
    users = {
        user.name: user
        for user in experiment.users
        if isinstance(user, MetaUser) and user.kind in kinds
    }
    if not users:
        raise ValueError(f"users must include one that has a {field}")
    rows = pd.DataFrame(
        [
            row.record() | line_of(users[row.user], field)
            for row in experiment.rows([experiment.settings.n_turns])
            if row.measure == measure and row.user in users
        ]
    )
    return choices_figure(rows, measure.name, field, title)


def choices_figure(rows: pd.DataFrame, measure: str, field: str, title: str) -> Picture:
    """Columns: recommender, mean, ci_low, ci_high, a line's `kind`, and the field."""
    axis = alt.Axis(tickMinStep=1, format="d") if field == "tolerance" else alt.Axis()
    base = alt.Chart(rows).encode(
        x=alt.X(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(padding=8)),
        color=alt.Color("kind:N", title=None, legend=LEGEND, **_wider(rows["kind"].nunique())),
    )
    spans = base.mark_rule().encode(y=alt.Y("ci_low:Q", title=measure), y2="ci_high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=measure))
    return _facets(alt.layer(spans, line).properties(width=220, height=200), rows)


def _facets(layered: Any, rows: pd.DataFrame) -> Picture:
    facet = alt.Facet("recommender:N", title=None, sort=list(dict.fromkeys(rows["recommender"])))
    picture: Picture = layered.facet(facet=facet, columns=N_COLUMNS)
    return picture


def _wider(n_lines: int) -> dict[str, Any]:
    return {"scale": alt.Scale(scheme="tableau20")} if n_lines > N_COLOURS else {}


def has_several(users: Iterable[AnyUser], field: str) -> bool:
    kinds = ("prob",) if field == "p_switch" else ("tol", "prob")
    return len({getattr(user, field) for user in users if user.kind in kinds}) > 1


def line_of(user: AnyUser, field: str) -> dict[str, Any]:
    """A user's position on an axis, and its line: all other choices."""
    other = "p_switch" if field == "tolerance" else "tolerance"
    kind = "MetaSimTol"
    if user.kind != "tol":
        name = "P" if other == "p_switch" else other
        kind = f"MetaSimProb, {name} {getattr(user, other):g}"
    return {field: getattr(user, field), "kind": kind}


TICKS: Any = {"tickCount": 5}
# Choices tell users apart: each has a line of its own, and what is longer than a telephone is wide
# goes on below.
CHOICE_ENDS, LINE_ENDS = ", ", "\n"
NAME_WIDTH = 24
LINES = r"split(datum.label, '\n')"
NAMES: Any = {"labelExpr": LINES, "labelLimit": 260}
REPORT_LEGEND: Any = {"orient": "top", "columns": 1, "labelExpr": LINES, "labelLimit": 260}


def in_lines(name: str) -> str:
    choices = name.split(CHOICE_ENDS)
    return LINE_ENDS.join(line for one in choices for line in textwrap.wrap(one, NAME_WIDTH))


def spans_figure(rows: pd.DataFrame, axis: str, *, reference: float | None = None) -> Picture:
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
    sized: Picture = alt.layer(*layers).properties(
        width="container", height=height, autosize=FILLING
    )
    return sized


def tabulate_outcomes(record: Record) -> tuple[pd.DataFrame, list[str]]:
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
    rows = rows.assign(who=rows["who"].map(in_lines))
    whose = [in_lines(one) for one in whose]
    names = list(dict.fromkeys(rows["recommender"]))
    title = axis_title(_("Share whose final item would do"))
    base = alt.Chart(rows).encode(
        y=alt.Y("recommender:N", title=None, sort=names),
        yOffset=alt.YOffset("who:N", sort=whose),
        color=alt.Color("who:N", title=None, sort=whose, legend=REPORT_LEGEND),
    )
    spans = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    points = base.mark_point(opacity=1, filled=True, size=60).encode(
        x=alt.X("value:Q", title=title, axis=TICKS)
    )
    layers = [spans.encode(x=alt.X("ci_low:Q", title=title), x2="ci_high:Q"), points]
    sized: Picture = alt.layer(*layers).properties(
        width="container", height=height_of_rows(len(names), len(whose), step=16), autosize=FILLING
    )
    return sized
