"""What an audit counted, kind of finding by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from presentation.theme import BLUE, FILLING, ORANGE, RED, Picture, axis_title, height_of_rows

if TYPE_CHECKING:
    import pandas as pd


COLOURS = {"refused": RED, "defect": ORANGE, "note": BLUE}


def counted_findings(rows: pd.DataFrame) -> Picture:
    """A bar for each kind of finding, as long as it was found often, over all files.

    `rows` has the columns severity, finding, file and n.
    """
    import altair as alt

    names = {"refused": _("refused"), "defect": _("defects"), "note": _("notes")}
    drawn = rows.assign(part=[names[one] for one in rows["severity"]])
    there = [one for one in COLOURS if one in set(rows["severity"])]
    scale = alt.Scale(domain=[names[one] for one in there], range=[COLOURS[one] for one in there])
    findings = list(dict.fromkeys(rows["finding"]))
    tips = [
        alt.Tooltip("file:N", title=_("File")),
        alt.Tooltip("finding:N", title=_("Finding")),
        alt.Tooltip("n:Q", format=",", title=_("Count")),
    ]
    bars = (
        alt.Chart(drawn)
        .mark_bar()
        .encode(
            x=alt.X("n:Q", title=axis_title(_("Count")), axis=alt.Axis(tickMinStep=1, tickCount=6)),
            y=alt.Y("finding:N", title=None, sort=findings, axis=alt.Axis(labelLimit=220)),
            color=alt.Color(
                "part:N", title=None, scale=scale, legend=alt.Legend(orient="top", columns=3)
            ),
            detail="file:N",
            tooltip=tips,
        )
    )
    height = height_of_rows(len(findings), 1, step=22)
    picture: Picture = bars.properties(width="container", height=height, autosize=FILLING)
    return picture


def findings_in_words(rows: pd.DataFrame) -> str:
    """Each kind of finding with its count."""
    counts = rows.groupby("finding", sort=False)["n"].sum()
    return ", ".join(f"{name}: {int(n):,}" for name, n in counts.items()) + "."
