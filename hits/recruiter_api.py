"""What an Assay marketplace does at recruiters for a requester, over its signed API: the one client
of it. Whatever is requested here may be requested again; answers are checked before anything of
them is stored."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from hits.calls import count, identifier, text_of, time_of
from hits.connections import post
from hits.exceptions import MarketplaceFault, MarketplaceRefused, RecruitingRefused, require
from hits.models import Batch, Connection, Recruitment

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class RefusedBonus:
    worker_id: str
    request_token: str
    problem: str


@dataclass(frozen=True)
class Standing:
    """What a marketplace says of recruiting: each list holds values for rows of ours.

    `studies` are by the key of each, calls and participations with the `study` that they are of,
    `withdrawn` ids of assignments whose answers were taken back by their participants. It says
    nothing of what was sent after it was `asked_at`.
    """

    recruiters: Rows
    studies: Mapping[str, dict[str, Any]]
    calls: Rows
    withdrawn: tuple[str, ...]
    participations: Rows
    refused_bonuses: tuple[RefusedBonus, ...]
    asked_at: datetime


@dataclass(frozen=True)
class Links:
    """Invitation links of a batch: `people` holds values for rows of InvitedPerson."""

    is_open: bool
    shared_link: str
    people: Rows


State = Recruitment.State
# The marketplace reserves a person's HITs together.
MOST_HITS_PER_PERSON = 100
PREFIX = "/recruiting"
MOST_AMOUNT = Decimal(1_000_000_000)
MOST_DECIMALS = 4
MOST_ROWS = 10_000
MOST_REFUSED_BONUSES = 100_000
AMOUNTS_OF_A_STUDY = (
    *("quoted_cost", "quoted_bonus", "quoted_bonus_cost", "reward_there"),
    "screen_out_reward_there",
)
# A time, and of those at the same time a number.
AFTER = re.compile(
    r"2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-9:]{8}(?:\.[0-9]{1,6})?[+-][0-9:]{5}(?: [0-9]{1,19})?"
)


def annotation_prefix(batch: Batch) -> str:
    return f"assay:{batch.key}:"


def fetch_standing(connection: Connection, *, prefix: str = "") -> Standing:
    asked_at = timezone.now()
    answer = _ask(connection, "", {"annotation_prefix": prefix} if prefix else {})
    recruiters = [one for one in _rows(answer, "recruiters") if one.get("kind") == "prolific"]
    return Standing(
        [_recruiter(row) for row in recruiters],
        {text_of(row, "request_token", most=64): _study(row) for row in _rows(answer, "studies")},
        [_call(row) for row in _rows(answer, "calls")],
        _withdrawn(answer),
        # Marketplaces of earlier versions tell of none.
        [
            {
                "study": identifier(row, "study"),
                "worker_id": identifier(row, "worker_id"),
                "state": text_of(row, "state", most=20),
                "outcome": text_of(row, "outcome", most=20),
                "reported": text_of(row, "reported", most=20),
                "arrived_at": time_of(row["arrived_at"], "arrived_at")
                if row.get("arrived_at")
                else None,
            }
            for row in _rows(answer, "participations", is_new=True)
        ],
        _refused_bonuses(answer),
        asked_at,
    )


def fetch_decisions(connection: Connection, *, after: str) -> tuple[dict[str, str], str]:
    # Marketplaces of earlier versions return none.
    answer = post(connection, f"{PREFIX}/decisions", {"after": after})
    if answer is None:
        return {}, after
    decided = {
        identifier(row, "assignment_id"): text_of(row, "status", most=10)
        for row in _rows(answer, "decisions")
    }
    next_ones = text_of(answer, "after", most=64)
    require(
        not next_ones or AFTER.fullmatch(next_ones),
        MarketplaceFault(_("{name} is no time").format(name="after"), code="not_a_time"),
    )
    return decided, next_ones


def offer_token(
    connection: Connection, *, name: str, token: str, workspace: str, project: str
) -> str:
    content = {"name": name, "token": token, "workspace": workspace}
    if project:
        content["project"] = project
    return identifier(_ask(connection, "/connect", content), "recruiter")


def disconnect(connection: Connection, recruiter: str) -> None:
    _ask(connection, "/disconnect", {"recruiter": recruiter})


def keep_for_participants(connection: Connection, hit_type_id: str) -> None:
    _ask(connection, "/hand-over", {"hit_type_id": hit_type_id})


def draft(recruitment: Recruitment) -> None:
    batch = recruitment.batch
    content = {
        "request_token": recruitment.key,
        "recruiter": recruitment.recruiter.public_id,
        "hit_type_id": batch.hit_type_id,
        "annotation_prefix": annotation_prefix(batch),
        "reward": f"{recruitment.reward:.2f}",
        "minutes": recruitment.minutes,
        "items": recruitment.items,
        "places": recruitment.places,
        "devices": recruitment.devices,
        "excluded": list(recruitment.excluded.values_list("public_id", flat=True)),
    }
    # Only what is said: a marketplace of an earlier version knows none of it.
    if recruitment.filters:
        content["filters"] = recruitment.filters
    if recruitment.labels:
        content["labels"] = recruitment.labels
    if recruitment.screen_out_reward is not None:
        content["screen_out_reward"] = f"{recruitment.screen_out_reward:.2f}"
        content["screen_out_places"] = recruitment.screen_out_places
    _ask(batch.connection, "/draft", content)


def act(recruitment: Recruitment, action: str, token: str, values: Mapping[str, Any]) -> None:
    content = {"study": recruitment.public_id, "action": action, "request_token": token}
    _ask(recruitment.batch.connection, "/act", content | dict(values))


def pay_bonus(
    recruitment: Recruitment, token: str, *, worker_id: str, amount: str, reason: str
) -> int:
    """Return the number of the call. RecruitingRefused also if the recruiter has refused this
    bonus."""
    answer = _ask(
        recruitment.batch.connection,
        "/bonus",
        {
            "study": recruitment.public_id,
            "request_token": token,
            "worker_id": worker_id,
            "amount": amount,
            "currency": recruitment.recruiter.currency,
            "reason": reason,
        },
        pays=True,
    )
    # It may have been requested before, and nobody heard of it.
    require(
        answer.get("state") != "refused",
        RecruitingRefused(
            _("The recruiter has refused it since it was requested first. Request it again."),
            code="bonus_refused",
        ),
    )
    return count(answer.get("call"), "call")


def ask_demographics(recruitment: Recruitment) -> None:
    _ask(recruitment.batch.connection, "/demographics", {"study": recruitment.public_id})


def erase_participant(recruitment: Recruitment, *, worker_id: str) -> None:
    _ask(
        recruitment.batch.connection,
        "/erase",
        {"study": recruitment.public_id, "worker_id": worker_id},
    )


def hits_per_person(batch: Batch) -> int:
    """The most HITs of the batch that one invited person can do."""
    return min(batch.max_per_worker or 1, batch.hits.count(), MOST_HITS_PER_PERSON)


def open_own_study(batch: Batch) -> str:
    """Open the batch's HITs for people invited by links; return the study's id there."""
    answer = _ask(
        batch.connection,
        "/open",
        {
            "request_token": f"links:{batch.key}",
            "hit_type_id": batch.hit_type_id,
            "annotation_prefix": annotation_prefix(batch),
            "items": hits_per_person(batch),
        },
    )
    if not isinstance(row := answer.get("study"), dict):
        raise MarketplaceFault(_("{name} is missing").format(name="study"), code="missing")
    return identifier(row, "study")


def exchange_links(
    connection: Connection,
    study: str,
    *,
    labels: Sequence[str],
    revoked: Sequence[int],
    **wanted: bool,
) -> Links:
    """Make and revoke links, set `is_shared` or `is_open`, and return all links."""
    content = {"study": study, "labels": list(labels), "revoked": list(revoked), **wanted}
    answer = _ask(connection, "/links", content)
    return Links(
        is_open=text_of(answer, "state", most=10) == State.ACTIVE,
        shared_link=_link(answer, "shared_link"),
        people=[
            {
                "number": count(row.get("invitation"), "invitation") or None,
                "name": text_of(row, "label", most=100),
                "link": _link(row, "link"),
                "is_revoked": row.get("is_revoked") is True,
                "worker_id": text_of(row, "worker_id", most=64),
                "state": text_of(row, "state", most=20),
                "outcome": text_of(row, "outcome", most=20),
                "n_hits": count(row.get("n_hits"), "n_hits"),
                "n_done": count(row.get("n_done"), "n_done"),
                "arrived_at": time_of(row["arrived_at"], "arrived_at")
                if row.get("arrived_at")
                else None,
            }
            for row in _rows(answer, "people")
        ],
    )


def _link(row: dict[str, Any], name: str) -> str:
    link = text_of(row, name, most=500)
    # It becomes an address on a page.
    if link and not link.startswith(("https://", "http://")):
        raise MarketplaceFault(_("{name} is not a web address").format(name=name))
    return link


def settle(recruitment: Recruitment, *, number: int, was_done: bool) -> None:
    _ask(recruitment.batch.connection, "/settle", {"call": number, "was_done": was_done})


def _ask(
    connection: Connection, path: str, content: dict[str, Any], *, pays: bool = False
) -> dict[str, Any]:
    """RecruitingRefused if it did nothing. An answer of a proxy proves nothing: whether a
    payment (`pays`) was made is then unknown."""
    try:
        answer = post(connection, f"{PREFIX}{path}", content)
    except MarketplaceRefused as refusal:
        if refusal.code != str(HTTPStatus.BAD_REQUEST.value):
            raise
        raise RecruitingRefused(refusal.message) from refusal
    if answer is None and pays:
        raise MarketplaceFault(_("it answered with a page of something else"))
    if answer is None:
        raise RecruitingRefused(
            _("The marketplace of “{name}” works with no recruiters.").format(name=connection),
            code="no_recruiters",
        )
    return answer


def _withdrawn(answer: dict[str, Any]) -> tuple[str, ...]:
    ids = answer.get("withdrawn", [])  # marketplaces of earlier versions send none
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise MarketplaceFault(_("it sent no list of {name}").format(name="withdrawn"))
    return tuple(ids[:MOST_ROWS])


def _rows(
    answer: dict[str, Any], name: str, *, is_new: bool = False, most: int = MOST_ROWS
) -> list[dict[str, Any]]:
    rows = answer.get(name, [] if is_new else None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise MarketplaceFault(_("it sent no list of {name}").format(name=name))
    return rows[:most]


def _recruiter(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "public_id": identifier(row, "recruiter"),
        "name": text_of(row, "name", most=100),
        "is_connected": row.get("is_connected") is True,
        "is_being_tried": row.get("is_being_tried") is True,
        "account": text_of(row, "account", most=200),
        "currency": text_of(row, "currency", most=3),
        "workspace": text_of(row, "workspace", most=64),
        "project": text_of(row, "project", most=64),
        "problem": text_of(row, "problem", most=10_000),
    }


def _study(row: dict[str, Any]) -> dict[str, Any]:
    action = text_of(row, "action", most=10)
    values = {
        "public_id": identifier(row, "study"),
        "state": _study_state(row, is_under_way=bool(action)),
        "is_under_way": bool(action),
        "problem": text_of(row, "problem", most=10_000),
        "sessions": _counts(row, "sessions"),
        "outcomes": _counts(row, "outcomes"),
        "charges": _charges(row),
        "unsent": _counts(row, "unsent") if "unsent" in row else {},
        "n_entered": count(row.get("n_entered", 0), "n_entered"),
    }
    values |= {name: count(row.get(name), name) for name in ("places", "n_waiting")}
    for name in ("quoted_places", "free", "needed"):
        values[name] = None if row.get(name) is None else count(row[name], name)
    return values | {name: _amount(row, name) for name in AMOUNTS_OF_A_STUDY}


def _study_state(row: dict[str, Any], *, is_under_way: bool) -> str:
    state, is_posted = text_of(row, "state", most=10), bool(text_of(row, "external_id", most=100))
    if state == State.DRAFT and not is_posted:
        return State.REQUESTED if is_under_way else State.REFUSED
    if state == State.STOPPED and not is_posted:
        return State.DISCARDED
    return state if state in State.values else State.STOPPED


def _call(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": count(row.get("call"), "call"),
        "study": identifier(row, "study"),
        "kind": text_of(row, "kind", most=20),
        "is_uncertain": row.get("state") == "uncertain",
        "amount": _amount(row, "amount"),
        "currency": text_of(row, "currency", most=3),
        "worker_id": identifier(row, "worker_id"),
        "submission_id": text_of(row, "submission_id", most=240),
        "problem": text_of(row, "problem", most=10_000),
        "shows_by": None if row.get("shows_by") is None else time_of(row["shows_by"], "shows_by"),
        "request_token": text_of(row, "request_token", most=100) if "request_token" in row else "",
    }


def _refused_bonuses(answer: dict[str, Any]) -> tuple[RefusedBonus, ...]:
    name = "refused_bonuses"
    if name in answer:
        rows = _rows(answer, name, most=MOST_REFUSED_BONUSES)
    else:
        rows = [
            row
            for row in _rows(answer, "calls")
            if row.get("state") == "refused" and "request_token" in row
        ]
    bonuses = (
        RefusedBonus(
            worker_id=identifier(row, "worker_id"),
            request_token=text_of(row, "request_token", most=100),
            problem=text_of(row, "problem", most=10_000),
        )
        for row in rows
    )
    return tuple(one for one in bonuses if one.request_token)


def _charges(row: dict[str, Any]) -> dict[str, str]:
    charges = row.get("charges", {})
    if not isinstance(charges, dict) or len(charges) > 20:
        raise MarketplaceFault(_("{name} are not numbers by name").format(name="charges"))
    amounts = {str(kind)[:20]: _amount(charges, kind) for kind in charges}
    return {kind: f"{amount:f}" for kind, amount in amounts.items() if amount is not None}


def _counts(row: dict[str, Any], name: str) -> dict[str, int]:
    counts = row.get(name)
    if not isinstance(counts, dict) or len(counts) > 50:
        raise MarketplaceFault(_("{name} are not numbers by name").format(name=name))
    return {str(key)[:20]: count(value, name) for key, value in counts.items()}


def _amount(row: dict[str, Any], name: str) -> Decimal | None:
    value = row.get(name)
    if value is None:
        return None
    try:
        amount = Decimal(value) if isinstance(value, str) and len(value) <= 30 else None
    except InvalidOperation:
        amount = None
    is_one = amount is not None and amount.is_finite() and 0 <= amount <= MOST_AMOUNT
    # No more places than the columns have, in which a mere exponent would be a book of zeros.
    if amount is None or not is_one or int(amount.as_tuple().exponent) < -MOST_DECIMALS:
        raise MarketplaceFault(_("{name} is not an amount of money").format(name=name))
    return amount
