import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.exceptions import first_or_raise, require
from marketplace.models import HitType, RecruitedStudy, RecruiterConnection
from marketplace.recruiting.connections import turn_at
from marketplace.recruiting.drafts import LABELS, Posting, discard_draft, draft_study
from marketplace.recruiting.places import judgments_wanted
from marketplace.recruiting.posting import (
    pause_study,
    publish_study,
    resume_study,
    set_places,
    stop_study,
)

MOVES: dict[str, Callable[..., None]] = {
    "pause": pause_study,
    "resume": resume_study,
    "stop": stop_study,
    "discard": discard_draft,
}


def amount(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    require(value.is_finite(), CommandError(f"'{text}' is no amount of money, such as 1.50."))
    return value


class Command(BaseCommand):
    help = (
        "Have a HIT type's HITs done by participants of a connected recruiter: draft a study and "
        "print its cost, publish it with --confirm AMOUNT, and pause, extend or stop it later "
        "(docs/recruiting.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--hit-type", metavar="ID", help="draft a study of its HITs")
        parser.add_argument("--study", metavar="TOKEN", help="a study that was drafted here")
        parser.add_argument("--connection", default="Prolific", help="by its name")
        parser.add_argument("--reward", type=amount, help="a participant's, in its currency")
        parser.add_argument("--minutes", type=int, help="that a participation takes")
        parser.add_argument("--items", type=int, default=1, help="HITs a participant")
        parser.add_argument(
            "--places", type=int, default=0, help="in all (default: as judgments need)"
        )
        parser.add_argument(
            "--filter",
            action="append",
            default=[],
            metavar="LINE",
            dest="filters",
            help="whom it invites, such as 'age = 18..65'; several times for several",
        )
        parser.add_argument(
            "--label",
            action="append",
            default=[],
            dest="labels",
            choices=LABELS,
            metavar="LABEL",
            help=f"of the study there (default: annotation): {', '.join(LABELS)}",
        )
        parser.add_argument("--screen-out-reward", type=amount, help="of whoever may not take part")
        parser.add_argument(
            "--screen-out-places", type=int, default=0, help="how many are paid so at most"
        )
        parser.add_argument("--confirm", type=amount, metavar="AMOUNT", help="the cost: publish")
        for name in MOVES:
            parser.add_argument(f"--{name}", action="store_true")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        facts = _draft(options) if options["hit_type"] else _change(options)
        self.stdout.write(json.dumps(facts) if options["json"] else _said(facts))


def _draft(options: dict[str, Any]) -> dict[str, Any]:
    require(
        options["reward"] is not None and options["minutes"] is not None,
        CommandError("Say --reward and --minutes."),
    )
    hit_type = first_or_raise(
        HitType.objects.filter(public_id=options["hit_type"]),
        CommandError(f"There is no HIT type {options['hit_type']}."),
    )
    study, cost = draft_study(
        connection=_connection(hit_type, options["connection"]),
        hit_type=hit_type,
        values=Posting(
            reward=options["reward"],
            minutes=options["minutes"],
            items_per_session=options["items"],
            places=options["places"],
            filters=tuple(options["filters"]),
            labels=tuple(options["labels"]),
            screen_out_reward=options["screen_out_reward"],
            screen_out_places=options["screen_out_places"],
        ),
    )
    shares = {
        "places": study.places,
        "items": study.items_per_session,
        "judgments": sum(judgments_wanted(hit_type)),
    }
    return _facts(study) | shares | {"cost": str(cost.displayed), "currency": cost.currency}


def _connection(hit_type: HitType, name: str) -> RecruiterConnection:
    return first_or_raise(
        RecruiterConnection.objects.filter(requester=hit_type.requester, name=name).exclude(
            encrypted_token=""
        ),
        CommandError(f"{hit_type.requester} has no connection {name}: see connect_prolific."),
    )


def _change(options: dict[str, Any]) -> dict[str, str]:
    study = first_or_raise(
        RecruitedStudy.objects.select_related("connection", "hit_type", "requester")
        .filter(token=options["study"] or "")
        .exclude(external_id=""),
        CommandError("Say --hit-type to draft a study, or --study TOKEN of one."),
    )
    with turn_at(study.connection):
        if options["confirm"] is not None:
            publish_study(study=study, confirmed=options["confirm"])
        elif options["places"]:
            set_places(study=study, total=options["places"])
        for name, move in MOVES.items():
            if options[name]:
                move(study=study)
    return _facts(study)


def _facts(study: RecruitedStudy) -> dict[str, str]:
    return {"study": study.token, "external_id": study.external_id, "state": study.state}


def _said(facts: dict[str, Any]) -> str:
    text = "Study {study} ({external_id} at the recruiter) is {state}.".format(**facts)
    if "cost" in facts:
        text += f"\n{_shares(facts)}"
        text += (
            "\nIt costs {cost} {currency} there, fees included. To publish it: recruit "
            "--study {study} --confirm {cost}"
        ).format(**facts)
    return text


def _shares(facts: dict[str, Any]) -> str:
    rest = facts["judgments"] - facts["items"] * (facts["places"] - 1)
    text = "Places: {places} for the {judgments} judgments that are wanted, {items} each."
    if rest > facts["items"]:
        text += f" {rest - facts['items']} judgments stay over."
    elif 0 < rest < facts["items"]:
        text += f" The last does {rest}, for the same reward."
    return text.format(**facts)
