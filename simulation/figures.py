"""Pictures of an experiment, each a function to a chart: the article's figures 6 to 8 in kind."""

from __future__ import annotations

import altair as alt
import pandas as pd
from django.utils.translation import gettext as _

from presentation.theme import Picture
from simulation.experiments import Experiment
from simulation.users import MetaUser
from stats.ranking import Measure

# Names of users are long, and tell users apart by their end.
LEGEND = alt.Legend(orient="bottom", columns=2, labelLimit=0, symbolOpacity=1)


def by_turn(experiment: Experiment, measure: Measure) -> Picture:
    """A measure turn by turn, a line with its interval for each user, apart by recommender."""
    rows = pd.DataFrame([row.record() for row in experiment.rows() if row.measure == measure])
    base = alt.Chart(rows).encode(x=alt.X("turn:O", title=_("Turn"), axis=alt.Axis(labelAngle=0)))
    names = [user.name for user in experiment.users]
    band = base.mark_area(opacity=0.12).encode(
        y=alt.Y("ci_low:Q", title=measure.name),
        y2="ci_high:Q",
        color=alt.Color("user:N", title=None, sort=names, legend=LEGEND),
    )
    line = base.mark_line(point=True).encode(
        y=alt.Y("mean:Q", title=measure.name),
        color=alt.Color("user:N", title=None, sort=names, legend=LEGEND),
        tooltip=[
            alt.Tooltip("user:N", title=_("User")),
            alt.Tooltip("turn:O", title=_("Turn")),
            alt.Tooltip("mean:Q", format=".3f", title=measure.name),
        ],
    )
    layered = alt.layer(band, line).properties(width=220, height=200)
    return layered.facet(column=alt.Column("recommender:N", title=None))


def by_tolerance(experiment: Experiment, measure: Measure) -> Picture:
    """A measure at the last turn against users' tolerance, a line for each kind of user."""
    return _against(experiment, measure, "tolerance", _("Tolerance, turns"), ("tol", "prob"))


def by_p_switch(experiment: Experiment, measure: Measure) -> Picture:
    """A measure at the last turn against P(switch), a line for each tolerance."""
    return _against(experiment, measure, "p_switch", _("Probability of switching"), ("prob",))


def pictures(experiment: Experiment) -> dict[str, Picture]:
    """All that the users have something to show in, by a name for a file."""
    kinds = {user.kind for user in experiment.users if isinstance(user, MetaUser)}
    charts: dict[str, Picture] = {}
    for measure in experiment.settings.measures:
        charts[f"turns-{measure.name}"] = by_turn(experiment, measure)
        if kinds & {"tol", "prob"}:
            charts[f"tolerance-{measure.name}"] = by_tolerance(experiment, measure)
        if "prob" in kinds:
            charts[f"p-switch-{measure.name}"] = by_p_switch(experiment, measure)
    return charts


def _against(
    experiment: Experiment, measure: Measure, field: str, title: str, kinds: tuple[str, ...]
) -> Picture:
    other = "p_switch" if field == "tolerance" else "tolerance"
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
            row.record()
            | {field: getattr(users[row.user], field), "kind": _kind(users[row.user], other)}
            for row in experiment.rows([last])
            if row.measure == measure and row.user in users
        ]
    )
    base = alt.Chart(rows).encode(
        x=alt.X(f"{field}:Q", title=title), color=alt.Color("kind:N", title=None, legend=LEGEND)
    )
    spans = base.mark_rule().encode(y=alt.Y("ci_low:Q", title=measure.name), y2="ci_high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=measure.name))
    layered = alt.layer(spans, line).properties(width=220, height=200)
    return layered.facet(column=alt.Column("recommender:N", title=None))


def _kind(user: MetaUser, other: str) -> str:
    """A line's name: all of the user but what the axis shows."""
    if user.kind == "tol":
        return "MetaSimTol"
    return f"MetaSimProb, {'P' if other == 'p_switch' else other} {getattr(user, other):g}"
