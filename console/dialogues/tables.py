"""The tables of a report on dialogues, for pages and files."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dialogues.rows import StoredReport
from presentation.documents import Cell, Column, Number, P, Table
from simulation.dialogue_estimates import (
    ATTAINABLE,
    BIAS,
    CEILING,
    COEFFICIENT,
    COUNTERFACTUAL,
    DECIDED,
    DEVIATION,
    FIT,
    ORDER,
    PEOPLE,
    SHARE,
)
from simulation.models import DialogueEstimate, DialogueStudy
from simulation.outcome_study import COEFFICIENTS

SHARES = {
    "after_loss": gettext_lazy("P(switch) after a loss"),
    "after_gain": gettext_lazy("P(switch) after a gain"),
    "nearest_excess": gettext_lazy("the nearest alternative, more often than by chance"),
    "leaves": gettext_lazy("leave"),
}
COEFFICIENT_NAMES = {"tau_b": "tau-b", "tau_ap": "tau_AP", "spa": "SPA"}


def tables_of(report: StoredReport) -> dict[str, Table]:
    """All tables of a report, by name, in the order of a page."""
    if report.report.dialogues.kind == DialogueStudy.Kind.SWITCHING:
        tables = [shares_table(report), users_table(report), model_table(report)]
    else:
        tables = [order_table(report), bias_table(report)]
        if report.part(COUNTERFACTUAL):
            tables.append(counterfactual_table(report))
    return {table.name: table for table in tables}


def number(row: DialogueEstimate, decimals: int = 3) -> Number:
    return Number(row.value, decimals, row.ci_low, row.ci_high, row.reason, no_interval=row.reason)


def shares_table(report: StoredReport) -> Table:
    columns = (Column(_("What people do"), is_number=False), Column(_("Share")))
    rows = [(str(SHARES[row.name]), number(row)) for row in report.part(SHARE)]
    note = _("P(switch) is of those who stayed: who left decided nothing about the product.")
    title = _("How often people switch, and leave")
    return Table("shares", title, columns, rows, note=note)


def model_table(report: StoredReport) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (row.name, number(row), P(row.p, reason=row.reason)) for row in report.part(COEFFICIENT)
    ]
    text = _("deviation between: {name}")
    rows += [(text.format(name=row.name), number(row), "") for row in report.part(DEVIATION)]
    return Table(
        "model",
        _("What decides whether people switch, in logits"),
        (Column(_("Term"), is_number=False), Column(_("Estimate")), Column(_("p"))),
        rows,
        note=_(
            "The article has people switch after a loss (a coefficient above 0), the program "
            "released with it after a gain (below 0). A deviation of 0 is the least that there "
            "can be: so many answers show no difference beyond chance there."
        ),
    )


def users_table(report: StoredReport) -> Table:
    """From the truest user on."""
    rows = [
        (
            error.user,
            Number(error.value, 3, is_best=place == 0),
            number(report.one(FIT, "gain", error.user)),
            P(report.one(FIT, "gain", error.user).p_adjusted),
        )
        for place, error in enumerate(report.part(FIT, "brier"))
    ]
    return Table(
        "users",
        _("How far simulated users' rules are from what people did"),
        (
            Column(_("User"), is_number=False),
            Column(_("Squared error")),
            Column(_("smaller than the first's by")),
            Column(_("p, Holm")),
        ),
        rows,
        note=_("The first is {user}. Intervals and tests are over workers.").format(
            user=_first(report)
        ),
    )


def _first(report: StoredReport) -> str:
    """The user that others are tested against, who alone has no p."""
    if report.report.dialogues.kind == DialogueStudy.Kind.OUTCOMES:
        return str(report.report.rules["users"][0])
    return next((row.user for row in report.part(FIT, "gain") if row.p is None), "")


def order_table(report: StoredReport) -> Table:
    rows = [tuple(_order_row(report, row.user)) for row in report.part(ORDER, "spa")]
    for title, part in (
        (_("halves of the annotators"), CEILING),
        (_("attainable, about"), ATTAINABLE),
    ):
        if not (tops := report.part(part)):
            continue  # of before it was kept
        rows.append((title, *map(number, tops), "", "", "", "", ""))
    return Table(
        "order",
        _("How simulated users' order of the recommenders agrees with people's"),
        (
            Column(_("User"), is_number=False),
            *(Column(COEFFICIENT_NAMES[name]) for name in COEFFICIENTS),
            Column(_("SPA above the first's by")),
            Column(_("p, Holm")),
            Column(_("alike"), group=_("Pairs that people decide")),
            Column(_("oppositely"), group=_("Pairs that people decide")),
            Column(_("not decided"), group=_("Pairs that people decide")),
        ),
        rows,
        note=_(
            "The first is {user}. Intervals are over {n} targets. SPA: soft pairwise accuracy. "
            "Attainable: by a user who knows what people would say; halves of them are too few."
        ).format(user=_first(report), n=f"{report.report.n_targets:,}"),
    )


def _order_row(report: StoredReport, user: str) -> Iterator[Cell]:
    yield user
    for name in COEFFICIENTS:
        yield number(report.one(ORDER, name, user))
    gain = report.one(ORDER, "spa_gain", user)
    yield number(gain)
    yield P(gain.p_adjusted)
    for name in ("alike", "opposite", "undecided"):
        yield int(report.one(DECIDED, name, user).value or 0)


def bias_table(report: StoredReport) -> Table:
    people = {row.recommender: row for row in report.part(PEOPLE)}
    apart = {(row.user, row.recommender): row for row in report.part(BIAS, "apart")}
    rows = [
        (
            row.recommender,
            row.user,
            number(people[row.recommender]),
            number(row),
            number(apart[row.user, row.recommender]),
            P(row.p, reason=row.reason),
            _equivalence(row),
        )
        for row in report.part(BIAS, "bias")
    ]
    return Table(
        "bias",
        _("How much better recommenders are with simulated users than with people"),
        (
            Column(_("Recommender"), is_number=False),
            Column(_("User"), is_number=False),
            Column(_("People")),
            Column(_("Bias")),
            Column(_("apart from the mean")),
            Column(_("p of equivalence")),
            Column(_("within ± {margin}").format(margin=report.report.rules["margin"])),
        ),
        rows,
        note=_(
            "People: the share who would take what a recommender's dialogue ended with; of items "
            "at random {share}. Only what differs between recommenders changes their order."
        ).format(share=number(people[""]).text),
    )


def _equivalence(row: DialogueEstimate) -> str:
    if row.is_equivalent is None:
        return _("cannot be said")
    return _("yes") if row.is_equivalent else _("not shown")


def counterfactual_table(report: StoredReport) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (row.user, Number(row.value, 2)) for row in report.part(COUNTERFACTUAL, "chosen_in")
    ]
    chosen = report.part(COUNTERFACTUAL, "gain")[0]
    known = ", ".join(row.recommender for row in report.part(COUNTERFACTUAL, "chosen_on"))
    error, base = (report.part(COUNTERFACTUAL, name)[0] for name in ("error", "base_error"))
    text = _(
        "Chosen on {known}: {user}. Its error on the other recommenders is {error}, the first "
        "user's {base} (root mean squared bias, without what chance adds); the squares differ by "
        "{gain}."
    )
    return Table(
        "counterfactual",
        _("Which user would be chosen on some recommenders"),
        (Column(_("User"), is_number=False), Column(_("Share of draws"))),
        rows,
        note=text.format(
            known=known,
            user=chosen.user,
            error=number(error).text,
            base=number(base).text,
            gain=number(chosen).text,
        ),
    )
