"""Pictures of an experiment, each a function to a chart: the article's figures 6 to 8 in kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from django.utils.translation import gettext as _

from presentation.theme import Picture
from simulation.experiments import Experiment
from simulation.users import MetaUser
from stats.ranking import Measure

if TYPE_CHECKING:
    import pandas as pd


# Recommenders side by side, of the width that a page has.
N_COLUMNS = 3
# Of the theme's colours; with more lines, twenty that are less far apart.
N_COLOURS = 8
# Names of users are long, and tell users apart by their end.
LEGEND: Any = {"orient": "bottom", "columns": 2, "labelLimit": 0, "symbolOpacity": 1}


def by_turn(experiment: Experiment, measure: Measure) -> Picture:
    """A measure turn by turn, a line with its interval for each user, apart by recommender."""
    import pandas as pd

    rows = pd.DataFrame([row.record() for row in experiment.rows() if row.measure == measure])
    return turns_figure(rows, measure.name, [user.name for user in experiment.users])


def turns_figure(rows: pd.DataFrame, measure: str, names: list[str]) -> Picture:
    """The same of rows of recommender, user, turn, mean, ci_low and ci_high."""
    import altair as alt

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
    layered = alt.layer(band, line).properties(width=220, height=200)
    return _facets(layered, rows)


def by_tolerance(experiment: Experiment, measure: Measure) -> Picture:
    """A measure at the last turn against users' tolerance, a line for each kind of user."""
    return _against(experiment, measure, "tolerance", _("Tolerance, turns"), ("tol", "prob"))


def by_p_switch(experiment: Experiment, measure: Measure) -> Picture:
    """A measure at the last turn against P(switch), a line for each tolerance."""
    return _against(experiment, measure, "p_switch", _("Probability of switching"), ("prob",))


def pictures(experiment: Experiment) -> dict[str, Picture]:
    """All that the users have something to show in, by a name for a file."""
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
    import pandas as pd

    users = {
        user.name: user
        for user in experiment.users
        if isinstance(user, MetaUser) and user.kind in kinds
    }
    if not users:
        raise ValueError(f"users must include one that has a {field}")
    last = experiment.settings.n_turns
    rows = pd.DataFrame(
        [
            row.record() | line_of(users[row.user], field)
            for row in experiment.rows([last])
            if row.measure == measure and row.user in users
        ]
    )
    return choices_figure(rows, measure.name, field, title)


def choices_figure(rows: pd.DataFrame, measure: str, field: str, title: str) -> Picture:
    """Rows of recommender, mean, ci_low and ci_high with a line's `kind`, against a field."""
    import altair as alt

    axis = alt.Axis(tickMinStep=1, format="d") if field == "tolerance" else alt.Axis()
    base = alt.Chart(rows).encode(
        x=alt.X(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(padding=8)),
        color=alt.Color("kind:N", title=None, legend=LEGEND, **_wider(rows["kind"].nunique())),
    )
    spans = base.mark_rule().encode(y=alt.Y("ci_low:Q", title=measure), y2="ci_high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=measure))
    layered = alt.layer(spans, line).properties(width=220, height=200)
    return _facets(layered, rows)


def _facets(layered: Any, rows: pd.DataFrame) -> Picture:
    """Recommenders in the order that the rows, and so the tables, have them in."""
    import altair as alt

    order = list(dict.fromkeys(rows["recommender"]))
    facet = alt.Facet("recommender:N", title=None, sort=order)
    picture: Picture = layered.facet(facet=facet, columns=N_COLUMNS)
    return picture


def _wider(n_lines: int) -> dict[str, Any]:
    """The scale of so many lines, where the theme's colours would come twice."""
    import altair as alt

    return {"scale": alt.Scale(scheme="tableau20")} if n_lines > N_COLOURS else {}


def has_several(users: Iterable[Choices], field: str) -> bool:
    """Whether there is anything to see against a field: users that differ in it."""
    kinds = ("prob",) if field == "p_switch" else ("tol", "prob")
    return len({getattr(user, field) for user in users if user.kind in kinds}) > 1


class Choices(Protocol):
    """A user's choices, as a user has them or as a result keeps them."""

    @property
    def kind(self) -> str: ...

    @property
    def tolerance(self) -> int: ...

    @property
    def p_switch(self) -> float: ...


def line_of(user: Choices, field: str) -> dict[str, Any]:
    """Where a user lies on an axis, and the line it is on: all of it but what the axis shows."""
    other = "p_switch" if field == "tolerance" else "tolerance"
    kind = "MetaSimTol"
    if user.kind != "tol":
        name = "P" if other == "p_switch" else other
        kind = f"MetaSimProb, {name} {getattr(user, other):g}"
    return {field: getattr(user, field), "kind": kind}
