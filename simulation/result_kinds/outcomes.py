from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.models import Study
from console.chart_values import values_in_words
from presentation import documents
from presentation.numbers import format_estimate, format_number, join_names
from results.kinds import (
    Chart,
    Computed,
    Count,
    Estimate,
    Given,
    PValue,
    Record,
    Row,
    Table,
    Text,
    Value,
    register_kind,
    sentence,
)
from results.models import Result
from results.settings import Choice, Names, Number, setting
from simulation.figures import describe_outcomes, outcomes_figure, spans_figure, tabulate_outcomes
from simulation.models import DialogueStudy
from simulation.outcome_report import FEW_RECOMMENDERS, outcome_record
from simulation.outcome_study import COEFFICIENTS, MARGIN
from simulation.result_kinds.switching import (
    MOST_SEED,
    DialogueKind,
    describe_truest,
    estimate,
    limits_of,
    named_frame,
)

USER = Text(gettext_lazy("User"))
DECIDED = gettext_lazy("Pairs that people decide")
COEFFICIENT_NAMES = {"tau_b": "tau-b", "tau_ap": "tau_AP", "spa": "SPA"}


def list_names(study: Study, name: str) -> list[str]:
    """Users or recommenders, in the order of the log."""
    rows = study.dialogues.simulated_outcomes.order_by("pk")
    of_one_item = rows.filter(item=rows.values("item")[:1])
    return list(dict.fromkeys(of_one_item.values_list(name, flat=True)))


@dataclass(frozen=True, kw_only=True)
class Recommenders(Names):
    """A proper subset of the study's recommenders, at first the first half."""

    def form_fields(self, name: str, default: Any, subject: Any) -> dict[str, forms.Field]:
        names = list_names(subject, "recommender")
        return {
            name: forms.MultipleChoiceField(
                label=self.label,
                choices=[(one, one) for one in names],
                initial=names[: (len(names) + 1) // 2],
                widget=forms.CheckboxSelectMultiple,
                validators=[partial(_require_others, len(names))],
            )
        }

    def read(self, name: str, data: Mapping[str, Any], default: Any) -> Any:
        return data.get(name, default)

    def begin(self, name: str, value: Any) -> dict[str, Any]:
        return {name: value}


def _require_others(n_recommenders: int, names: Sequence[str]) -> None:
    if len(names) == n_recommenders:
        raise forms.ValidationError(
            _("Leave at least one recommender to predict."), code="none_to_predict"
        )


@dataclass(frozen=True, kw_only=True)
class OutcomeSettings:
    first: str | None = setting(
        None,
        Choice(
            label=gettext_lazy("Others are compared with"),
            offer=lambda study: [(name, name) for name in list_names(study, "user")],
            key=str,
        ),
    )
    chosen_on: Sequence[str] = setting(
        (),
        Recommenders(
            label=gettext_lazy("Choose a user on these recommenders, and predict the others")
        ),
    )
    margin: float = setting(
        MARGIN,
        Number(
            label=gettext_lazy("Margin of equivalence"), least=0.001, most=0.5, is_fraction=True
        ),
    )
    seed: int = setting(0, Number(label=gettext_lazy("Seed"), least=0, most=MOST_SEED))


def list_orders(record: Record) -> list[Row]:
    """How each user's order agrees with people's; last, the agreement of halves of the
    annotators."""
    rows = [
        one
        | {
            name: {
                "value": one["values"][name],
                "ci_low": one["limits"][name][0],
                "ci_high": one["limits"][name][1],
                "reason": one["reasons"].get(name),
            }
            for name in COEFFICIENTS
        }
        | {"gain": _gain(one, one["spa_gain"])}
        for one in record["orders"]
    ]
    tops = (
        (_("halves of the annotators"), record["ceiling"]),
        (_("attainable, about"), record["attainable"]),
    )
    return [*rows, *({"user": title, **_tops(record, values)} for title, values in tops)]


def _gain(row: Row, value: float | None) -> Row:
    low, high = row["gain_limits"]
    return {"value": value, "ci_low": low, "ci_high": high}


def _tops(record: Record, values: Mapping[str, Any]) -> dict[str, Any]:
    reason = record["ceiling_reason"]
    return {
        name: {"value": values.get(name), "ci_low": None, "ci_high": None, "reason": reason}
        for name in COEFFICIENTS
    }


def list_biases(record: Record) -> list[Row]:
    people = {one["recommender"]: one for one in record["recommenders"]}
    return [
        one
        | {
            "people": people[one["recommender"]],
            "apart": {
                "value": one["apart"], "ci_low": one["apart_low"], "ci_high": one["apart_high"]
            },
        }
        for one in record["biases"]
    ]  # fmt: skip


def list_choices(record: Record) -> list[Row]:
    other = record["counterfactual"]
    return (
        [{"user": user, "share": share} for user, share in other["chosen_in"].items()]
        if other
        else []
    )


def _explain_orders(result: Result) -> str:
    return _(
        "The first is {user}. Intervals are over {n} targets. SPA: soft pairwise accuracy. "
        "Attainable: by a user who knows what people would say; halves of them are too few."
    ).format(user=result.record["users"][0], n=f"{result.facts['n_targets']:,}")


def _explain_biases(result: Result) -> str:
    return _(
        "People: the share who would take what a recommender's dialogue ended with; of items "
        "at random {share}. Only what differs between recommenders changes their order."
    ).format(share=_show_number(result.record["item_at_random"]))


def _explain_choice(result: Result) -> str:
    other = result.record["counterfactual"]
    return _(
        "Chosen on {known}: {user}. Its error on the other recommenders is {error}, the first "
        "user's {base} (root mean squared bias, without what chance adds); the squares differ by "
        "{gain}."
    ).format(
        known=", ".join(other["chosen_on"]),
        user=other["chosen"],
        error=documents.Number(other["error"], 3).text,
        base=documents.Number(other["base_error"], 3).text,
        gain=_show_number(_gain(other, other["gain"])),
    )


def _show_number(row: Row) -> str:
    return documents.Number(row["value"], 3, *limits_of(row), row.get("reason") or "").text


@register_kind
class OutcomeKind(DialogueKind):
    name = DialogueStudy.Kind.OUTCOMES.value
    title = gettext_lazy("Simulated users and people")
    job = "report_outcomes"
    job_label = gettext_lazy("Comparing users with people")
    settings = OutcomeSettings
    tables = {
        "order": Table(
            gettext_lazy("How simulated users' order of the recommenders agrees with people's"),
            {
                "user": USER,
                **{name: Estimate(COEFFICIENT_NAMES[name]) for name in COEFFICIENTS},
                "gain": Estimate(gettext_lazy("SPA above the first's by"), is_optional=True),
                "p_adjusted": PValue(gettext_lazy("p, Holm"), is_optional=True),
                "alike": Count(gettext_lazy("alike"), group=DECIDED, is_optional=True),
                "opposite": Count(gettext_lazy("oppositely"), group=DECIDED, is_optional=True),
                "undecided": Count(gettext_lazy("not decided"), group=DECIDED, is_optional=True),
            },
            note=_explain_orders,
            rows=list_orders,
        ),
        "bias": Table(
            gettext_lazy("How much better recommenders are with simulated users than with people"),
            {
                "recommender": Text(gettext_lazy("Recommender")),
                "user": USER,
                "people": Estimate(gettext_lazy("People")),
                "bias": Estimate(gettext_lazy("Bias")),
                "apart": Estimate(gettext_lazy("apart from the mean")),
                "p_equivalence": PValue(gettext_lazy("p of equivalence"), reason="reason"),
                "equivalent": Text(
                    gettext_lazy("within ± {margin}"),
                    labels={
                        "": gettext_lazy("cannot be said"),
                        "True": gettext_lazy("yes"),
                        "False": gettext_lazy("not shown"),
                    },
                ),
            },
            note=_explain_biases,
            rows=list_biases,
        ),
        "counterfactual": Table(
            gettext_lazy("Which user would be chosen on some recommenders"),
            {"user": USER, "share": Value(gettext_lazy("Share of draws"), digits=2)},
            note=_explain_choice,
            rows=list_choices,
        ),
    }

    def compute(self, given: Given[Study]) -> Computed:
        study, settings = given.subject, given.settings
        users = list_names(study, "user")
        users.sort(key=lambda name: name != settings["first"])
        record = outcome_record(
            study,
            users=users,
            chosen_on=settings["chosen_on"],
            margin=settings["margin"],
            seed=settings["seed"],
        )
        counts = {name: record[name] for name in ("n_answers", "n_annotators", "n_targets")}
        facts = {"users": record["users"], "judgments_version": study.judgments_version}
        return Computed(record=record, facts=counts | facts, seed=settings["seed"])

    def answer(self, result: Result) -> str:
        record = result.record
        rows = [one for one in list_orders(record) if "values" in one]
        best = max(rows, key=lambda row: row["spa"]["value"] or 0.0)
        shown = format_number(best["spa"]["value"])
        alike = [row["user"] for row in rows if format_number(row["spa"]["value"]) == shown]
        text = _("{user} orders recommenders most as people do: soft pairwise accuracy {spa}")
        if len(alike) == len(rows) > 1:
            text = _("All users order recommenders as people do by soft pairwise accuracy {spa}")
        elif len(rows) == 1:
            text = _("{user} orders recommenders as people do by soft pairwise accuracy {spa}")
        spa = format_estimate(best["spa"]["value"], *limits_of(best["spa"]))
        said = text.format(user=join_names(alike), spa=spa)
        code, basis = _describe_pairs(record)
        top = record["attainable"].get("spa")
        if top is None:
            return sentence(code, _("{said}. {basis}"), said=said, basis=basis)
        text = _("{said}, where a user who knows what people would say has about {top}. {basis}")
        return sentence(code, text, said=said, top=format_number(top), basis=basis)

    def details(self, result: Result) -> Iterator[str]:
        orders = result.record["orders"]
        yield from describe_truest([one | {"gain": one["spa_gain"]} for one in orders])
        for one in orders:
            yield _describe_biases(result, one["user"])

    def charts(self, result: Result) -> Iterator[Chart]:
        record = result.record
        orders = named_frame(
            (one["user"], one["spa"]) for one in list_orders(record) if "values" in one
        )
        top = record["attainable"].get("spa")
        words = _("Soft pairwise accuracy of each user's order, with 95 % intervals over targets.")
        if top is not None:
            words = _(
                "{words} Who knows what people would say has about the dashed line's."
            ).format(words=words)
        if len(orders):
            yield Chart(
                "order",
                _("Whose order of the recommenders is people's"),
                words,
                orders,
                partial(spans_figure, orders, _("Soft pairwise accuracy"), reference=top),
                values_in_words(orders),
            )
        outcomes, whose = tabulate_outcomes(record)
        yield Chart(
            "outcomes",
            _("Recommenders with people and with simulated users"),
            _(
                "The share of final items that would do: with people, with its 95 % interval, "
                "and with each simulated user."
            ),
            outcomes,
            partial(outcomes_figure, outcomes, whose),
            describe_outcomes(outcomes, whose[0]),
        )

    def list_estimates(self, record: Record) -> Iterator[Row]:
        for one in (*record["recommenders"], record["item_at_random"]):
            whose = {"recommender": one["recommender"], "reason": one["reason"]}
            yield estimate("people", "would_do", one["value"], limits_of(one), **whose)
        for one in record["biases"]:
            whose = {"user": one["user"], "recommender": one["recommender"]}
            tests = {"p": one["p_equivalence"], "is_equivalent": one["equivalent"]}
            limits, apart = limits_of(one), (one["apart_low"], one["apart_high"])
            yield estimate(
                "bias", "bias", one["bias"], limits, reason=one["reason"], **tests, **whose
            )
            yield estimate("bias", "apart", one["apart"], apart, **whose)
        for one in record["orders"]:
            yield from _list_order(one)
        for name in COEFFICIENTS:
            for part in ("ceiling", "attainable"):
                value, reason = record[part].get(name), record["ceiling_reason"]
                yield estimate(part, name, value, reason=reason)
        if other := record["counterfactual"]:
            part = "counterfactual"
            for name in other["chosen_on"]:
                yield estimate(part, "chosen_on", recommender=name)
            for user, share in other["chosen_in"].items():
                yield estimate(part, "chosen_in", share, user=user)
            for name in ("error", "base_error"):
                yield estimate(part, name, other[name], user=other["chosen"])
            yield estimate(part, "gain", other["gain"], other["gain_limits"], user=other["chosen"])


def _list_order(order: Row) -> Iterator[Row]:
    user = order["user"]
    for name in COEFFICIENTS:
        value, limits = order["values"][name], order["limits"][name]
        yield estimate("order", name, value, limits, user=user, reason=order["reasons"].get(name))
    tests = {"p": order["p"], "p_adjusted": order["p_adjusted"]}
    yield estimate("order", "spa_gain", order["spa_gain"], order["gain_limits"], user=user, **tests)
    for name in ("alike", "opposite", "undecided"):
        yield estimate("decided", name, order[name], user=user)


def _describe_pairs(record: Record) -> tuple[str, str]:
    n = len(record["recommenders"])
    n_pairs = n * (n - 1) // 2
    if n >= FEW_RECOMMENDERS:
        return "pairs", _("That rests on {n} pairs of recommenders.").format(n=f"{n_pairs:,}")
    return "few_pairs", ngettext(
        "That rests on {n} pair of recommenders, which says little: compare ten or more variants.",
        "That rests on {n} pairs of recommenders, which says little: compare ten or more variants.",
        n_pairs,
    ).format(n=n_pairs)


def _describe_biases(result: Result, user: str) -> str:
    rows = [one for one in result.record["biases"] if one["user"] == user]
    low = [one["recommender"] for one in rows if one["ci_high"] is not None and one["ci_high"] < 0]
    high = [one["recommender"] for one in rows if one["ci_low"] is not None and one["ci_low"] > 0]
    parts = []
    if low:
        parts.append(_("underestimates {names}").format(names=join_names(low)))
    if high:
        parts.append(_("overestimates {names}").format(names=join_names(high)))
    parts.append(_describe_equivalence(rows, result.settings["margin"]))
    return sentence("biases", _("{user} {verdicts}."), user=user, verdicts="; ".join(parts))


def _describe_equivalence(rows: Sequence[Row], margin: float) -> str:
    tested = [one["equivalent"] for one in rows if one["equivalent"] is not None]
    text = _("is shown to be within ± {margin} of people on {n} of {total} recommenders")
    if not tested:
        text = _(
            "could be tested for being within ± {margin} of people on 0 of {total} recommenders"
        )
    elif len(tested) < len(rows):
        text = _(
            "is shown to be within ± {margin} of people on {n} of {n_tested} recommenders on "
            "which that could be tested, of {total}"
        )
    return text.format(margin=margin, n=sum(tested), n_tested=len(tested), total=len(rows))
