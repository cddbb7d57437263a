import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from error_codes import require
from marketplace.models.recruiting import Outcome, RecruitedStudy
from marketplace.recruiting.records import (
    Filter,
    PostedStudy,
    Refused,
    StudyState,
    Submission,
    SubmissionState,
    Unreadable,
)

MINOR = 100
# A thousand millions, as of all amounts here.
MOST_UNITS, MOST_PLACES = 10**11, 10**7
LONGEST_ID, LONGEST_TEXT = 100, 1000
CURRENCY = re.compile("[A-Z]{3}")
UNREADABLE = "Prolific's answer cannot be read."
PARAMETERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
STUDY_STATES = {
    "UNPUBLISHED": StudyState.DRAFT,
    "SCHEDULED": StudyState.SCHEDULED,
    "PUBLISHING": StudyState.PUBLISHING,
    "ACTIVE": StudyState.ACTIVE,
    "PAUSED": StudyState.PAUSED,
    "AWAITING REVIEW": StudyState.AWAITING_REVIEW,
    "COMPLETED": StudyState.STOPPED,
}
TRANSITIONS = {"publish": "PUBLISH", "pause": "PAUSE", "resume": "START", "stop": "STOP"}
SUBMISSION_STATES = {
    "RESERVED": SubmissionState.RESERVED,
    "ACTIVE": SubmissionState.ACTIVE,
    "AWAITING REVIEW": SubmissionState.AWAITING_REVIEW,
    "APPROVED": SubmissionState.APPROVED,
    "REJECTED": SubmissionState.REJECTED,
    "RETURNED": SubmissionState.RETURNED,
    "TIMED-OUT": SubmissionState.TIMED_OUT,
    "SCREENED OUT": SubmissionState.SCREENED_OUT,
    "PROCESSING": SubmissionState.PROCESSING,
}
SCREEN_OUT, SCREEN_OUT_PAY = "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward"
CODE_TYPES = {
    Outcome.COMPLETED: "COMPLETED",
    Outcome.NO_CONSENT: "NO_CONSENT",
    Outcome.INCOMPATIBLE_DEVICE: "INCOMPATIBLE_DEVICE",
    Outcome.FAILED_ATTENTION: "FAILED_ATTENTION_CHECK",
    Outcome.SCREENED_OUT: "FIXED_SCREENOUT",
    Outcome.NO_MORE_ITEMS: "OTHER",
    Outcome.FOLLOW_UP: "FOLLOW_UP_STUDY",
}


def minor(amount: Decimal) -> int:
    units = amount * MINOR
    require(
        units == units.to_integral_value(),
        ValueError(f"amount must be whole in minor units, got {amount}"),
    )
    return int(units)


def major(units: Any) -> Decimal:
    """Pounds of pence, with two decimals, or more for a fraction of a penny."""
    is_number = isinstance(units, int | Decimal) and not isinstance(units, bool)
    require(
        is_number and Decimal(units).is_finite() and abs(units) <= MOST_UNITS,
        Unreadable(UNREADABLE),
    )
    amount = Decimal(str(units)) / MINOR
    whole = amount.quantize(Decimal("0.01"))
    return whole if whole == amount else amount


# What participants read whose place is asked back, since there is nothing to pay for.
RETURN_REASONS = {
    Outcome.NO_CONSENT: "You did not agree to take part.",
    Outcome.INCOMPATIBLE_DEVICE: "The study does not work on this device.",
    Outcome.SCREENED_OUT: "The study is for others than you.",
    Outcome.NO_MORE_ITEMS: "Others have done all of the work meanwhile.",
}


def draft_body(
    study: RecruitedStudy, filters: Sequence[Filter], *, url: str, project: str
) -> dict[str, Any]:
    """A study that was drafted here. `url` is without the parameters that Prolific fills in."""
    assert study.reward is not None
    separator = "&" if "?" in url else "?"
    body: dict[str, Any] = {
        "name": study.hit_type.title,
        # By which a draft whose answer was lost is found.
        "internal_name": study.token,
        "description": study.hit_type.description,
        "external_study_url": f"{url}{separator}{PARAMETERS}",
        "prolific_id_option": "url_parameters",
        "total_available_places": study.places,
        "estimated_completion_time": study.minutes,
        "maximum_allowed_time": study.maximum_seconds // 60,
        "reward": minor(study.reward),
        "completion_codes": [
            {
                "code": one.code,
                "code_type": CODE_TYPES[Outcome(one.outcome)],
                "actions": [_action(study, Outcome(one.outcome))],
            }
            for one in study.codes.order_by("pk")
        ],
        "submissions_config": {"max_submissions_per_participant": 1},
        "device_compatibility": study.devices,
        "filters": [_filter(each) for each in filters],
        "study_labels": study.labels or ["annotation"],
        "project": project,
    }
    return {name: value for name, value in body.items() if value not in ([], "")}


def _action(study: RecruitedStudy, outcome: Outcome) -> dict[str, Any]:
    if outcome == Outcome.SCREENED_OUT and study.screen_out_reward is not None:
        pay = {SCREEN_OUT_PAY: minor(study.screen_out_reward)}
        return {"action": SCREEN_OUT, "slots": study.screen_out_places, **pay}
    if outcome in RETURN_REASONS:
        return {"action": "REQUEST_RETURN", "return_reason": RETURN_REASONS[outcome]}
    return {"action": "MANUALLY_REVIEW"}


def _filter(one: Filter) -> dict[str, Any]:
    if one.values:
        return {"filter_id": one.filter_id, "selected_values": list(one.values)}
    ends = {"lower": one.lower, "upper": one.upper}
    selected = {name: float(end) for name, end in ends.items() if end is not None}
    return {"filter_id": one.filter_id, "selected_range": selected}


def study_of(body: Any) -> PostedStudy:
    facts = mapping_of(body)
    return PostedStudy(
        id=id_of(facts),
        state=STUDY_STATES.get(_text(facts.get("status")), StudyState.UNKNOWN),
        places=_places(facts.get("total_available_places") or 0),
        token=_text(facts.get("internal_name")),
        reward=_reward(facts),
        screen_outs=_screen_outs(facts.get("completion_codes")),
    )


def _reward(study: Mapping[str, Any]) -> Decimal | None:
    try:
        return price_of(study, "reward")
    except Unreadable:  # whoever only follows the study needs none
        return None


def _screen_outs(codes: Any) -> tuple[tuple[Decimal, int], ...] | None:
    try:
        actions = [mapping_of(one) for code in codes for one in mapping_of(code)["actions"]]
        paid = [one for one in actions if one["action"] == SCREEN_OUT]
        return tuple((price_of(one, SCREEN_OUT_PAY), _places(one["slots"])) for one in paid)
    except (Unreadable, KeyError, TypeError):
        return None


def submission_of(body: Any, *, study: str = "") -> Submission:
    """A submission, of a list or by itself; only the latter has its bonuses."""
    facts = mapping_of(body)
    return Submission(
        id=id_of(facts),
        study=_text(facts.get("study_id")) or study,
        participant=_text(facts.get("participant")) or _text(facts.get("participant_id")),
        state=SUBMISSION_STATES.get(_text(facts.get("status")), SubmissionState.UNKNOWN),
        code=_text(facts.get("entered_code")) or _text(facts.get("study_code")),
        started_at=_moment(facts.get("started_at")),
        completed_at=_moment(facts.get("completed_at")),
        bonuses=() if study else _bonuses(facts.get("bonus_payments") or ()),
    )


def _bonuses(said: Any) -> tuple[Decimal, ...] | None:
    try:
        return tuple(map(major, said)) if isinstance(said, list | tuple) else None
    except Unreadable:  # a decision needs none of them
        return None


def mapping_of(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise Unreadable(UNREADABLE)
    return body


def rows_of(body: Any) -> list[Mapping[str, Any]]:
    rows = mapping_of(body).get("results")
    if not isinstance(rows, list):
        raise Unreadable(UNREADABLE)
    return [mapping_of(row) for row in rows]


def is_id(said: str) -> bool:
    return said.isascii() and said.replace("-", "").isalnum() and len(said) <= LONGEST_ID


def id_of(facts: Mapping[str, Any], name: str = "id") -> str:
    said = facts.get(name)
    if not isinstance(said, str) or not is_id(said):
        raise Unreadable(UNREADABLE)
    return said


def secret_of(facts: Mapping[str, Any]) -> str:
    said = facts.get("value")
    if not isinstance(said, str) or not 0 < len(said) <= LONGEST_TEXT:
        raise Unreadable(UNREADABLE)
    return said


def price_of(facts: Any, name: str) -> Decimal:
    amount = major(mapping_of(facts).get(name))
    require(amount >= 0, Unreadable(UNREADABLE))
    return amount


def currency_of(facts: Mapping[str, Any]) -> str:
    said = _text(facts.get("currency_code"))
    require(CURRENCY.fullmatch(said), Unreadable(UNREADABLE))
    return said


def _text(said: Any) -> str:
    is_kept = isinstance(said, str) and len(said) <= LONGEST_TEXT and "\x00" not in said
    return str(said) if is_kept else ""


def _places(said: Any) -> int:
    if not (isinstance(said, int) and not isinstance(said, bool)) or not 0 <= said <= MOST_PLACES:
        raise Unreadable(UNREADABLE)
    return int(said)


def _moment(said: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(said) if isinstance(said, str) and said else None
    except ValueError:
        return None
    if moment is None or not 1970 <= moment.year < 9000:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


# Prolific's export of what participants told it, a CSV with a line for each submission.

SUBMISSION, PARTICIPANT = "submission id", "participant id"
# What is no answer of the participant's, or leads back to the submission.
OTHERS = re.compile(
    r"\b(id|code|status|approved|reviewed|started|completed|archived|accepted)\b", re.IGNORECASE
)


def demographics_of(content: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each submission's answers, without columns that identify somebody."""
    try:
        rows = list(csv.DictReader(io.StringIO(content)))
    except csv.Error as error:
        raise Refused(f"Prolific's file of demographics can't be read: {error}") from error
    for row in rows:
        cells = {name: value for name, value in row.items() if name and isinstance(value, str)}
        plain = {name.strip().lower().replace("_", " "): value for name, value in cells.items()}
        require(
            SUBMISSION in plain,
            Refused("Prolific's file of demographics has no column of submissions."),
        )
        ids = {plain[SUBMISSION], plain.get(PARTICIPANT, "")}
        yield (
            plain[SUBMISSION],
            {
                name.strip(): value
                for name, value in cells.items()
                if not OTHERS.search(name.replace("_", " ")) and value not in ids
            },
        )
