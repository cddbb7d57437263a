import json as json_format
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural
from annotation.models import Study
from presentation.documents import Number
from presentation.text_tables import estimate_line
from simulation.outcome_report import FEW_RECOMMENDERS, outcome_record
from simulation.outcome_study import COEFFICIENTS, MARGIN


class Command(BaseCommand):
    help = "Whether the order of recommenders holds with people: the report of an outcome study."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument(
            "--user",
            action="append",
            metavar="NAME",
            help="as the log names it; others are compared with the first (all, in its order)",
        )
        parser.add_argument(
            "--chosen-on",
            action="append",
            metavar="RECOMMENDER",
            help="choose a user on these, and predict the others (the first half)",
        )
        parser.add_argument("--margin", type=float, default=MARGIN, help="of equivalence")
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, json: bool, **options: Any) -> None:
        try:
            record = outcome_record(
                Study.objects.named(study),
                users=options["user"] or (),
                chosen_on=options["chosen_on"] or (),
                margin=options["margin"],
                seed=options["seed"],
            )
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        text = json_format.dumps(record, indent=1) if json else "\n".join(_lines(record))
        self.stdout.write(text)


def _lines(record: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{record['n_answers']:,} answers of {record['n_annotators']:,} annotators about "
        f"{record['n_targets']:,} targets."
    )
    if (n := len(record["recommenders"])) < FEW_RECOMMENDERS:
        yield f"{_pairs(n)} of recommenders: an order of so few says little, compare ten or more"
    for one in record["recommenders"]:
        yield estimate_line(f"people would take what {one['recommender']} ended with", one)
    yield estimate_line("people would take an item at random", record["item_at_random"])
    reason = f" ({record['ceiling_reason']})" if record["ceiling_reason"] else ""
    yield f"halves of the annotators agree: {_coefficients(record['ceiling'])}{reason}"
    yield f"about what a user could have: {_coefficients(record['attainable'])}{reason}"
    for user in record["users"]:
        yield from _of_user(record, user)
    if other := record["counterfactual"]:
        gain = {"value": other["gain"], "ci_low": other["gain_limits"][0]}
        gain["ci_high"] = other["gain_limits"][1]
        yield (
            f"chosen on {', '.join(other['chosen_on'])}: {other['chosen']}, whose error on the "
            f"others is {Number(other['error'], 3).text}, the first user's "
            f"{Number(other['base_error'], 3).text}; {estimate_line('the squares differ by', gain)}"
        )


def _pairs(n_recommenders: int) -> str:
    n_pairs = n_recommenders * (n_recommenders - 1) // 2
    return "1 pair" if n_pairs == 1 else f"{n_pairs} pairs"


def _of_user(record: dict[str, Any], user: str) -> Iterator[str]:
    order = next(one for one in record["orders"] if one["user"] == user)
    yield f"{user}: {_coefficients(order['values'])}; {_decided(order)}"
    if order["p"] is not None:
        low, high = order["gain_limits"]
        gain = {"value": order["spa_gain"], "ci_low": low, "ci_high": high}
        said = estimate_line("  spa above the first user's by", gain)
        yield f"{said}, p {Number(order['p_adjusted'], 3).text} (Holm)"
    for one in record["biases"]:
        if one["user"] == user:
            verdict = "equivalent" if one["equivalent"] else "not shown to be equivalent"
            if one["equivalent"] is None:
                verdict = f"equivalence cannot be tested ({one['reason']})"
            numbers = {"value": one["bias"], "ci_low": one["ci_low"], "ci_high": one["ci_high"]}
            yield estimate_line(f"  bias, {one['recommender']}", numbers) + f", {verdict}"


def _coefficients(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {Number(values.get(name), 3).text}" for name in COEFFICIENTS)


def _decided(order: dict[str, Any]) -> str:
    return (
        f"of the pairs that people decide {order['alike']} alike, {order['opposite']} oppositely, "
        f"{order['undecided']} not"
    )
