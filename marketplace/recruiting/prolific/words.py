"""Prolific's words and numbers, and ours: states, amounts in minor units, codes with actions."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from marketplace.models.recruiting import Outcome
from marketplace.recruiting.records import (
    Code,
    Filter,
    PostedStudy,
    StudyDraft,
    StudyState,
    Submission,
    SubmissionState,
)

MINOR = 100
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
    """So many pence; an amount with a fraction of one is refused."""
    units = amount * MINOR
    if units != units.to_integral_value():
        raise ValueError(f"amount must be whole in minor units, got {amount}")
    return int(units)


def major(units: Any) -> Decimal:
    """Pounds of pence, with two decimals or, of a fraction of a penny, as many as it has."""
    amount = Decimal(str(units)) / MINOR
    whole = amount.quantize(Decimal("0.01"))
    return whole if whole == amount else amount


def draft_body(draft: StudyDraft) -> dict[str, Any]:
    """A study as it is drafted; what it does not say is left to Prolific."""
    separator = "&" if "?" in draft.url else "?"
    body: dict[str, Any] = {
        "name": draft.title,
        "internal_name": draft.token,
        "description": draft.description,
        "external_study_url": f"{draft.url}{separator}{PARAMETERS}",
        "prolific_id_option": "url_parameters",
        "total_available_places": draft.places,
        "estimated_completion_time": draft.minutes,
        "maximum_allowed_time": draft.maximum_minutes,
        "reward": minor(draft.reward),
        "completion_codes": [_code(code) for code in draft.codes],
        "submissions_config": {"max_submissions_per_participant": 1},
        "device_compatibility": list(draft.devices),
        "filters": [_filter(each) for each in draft.filters],
        "study_labels": list(draft.labels),
        "content_warnings": list(draft.content_warnings),
        "project": draft.project,
        "is_external_study_url_secure": draft.signed_link,
    }
    return {name: value for name, value in body.items() if value not in ([], "", False)}


def _code(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "code_type": CODE_TYPES[code.outcome],
        "actions": _actions(code),
    }


def _actions(code: Code) -> list[dict[str, Any]]:
    if code.screen_out_pay is not None:
        pay = {"fixed_screen_out_reward": minor(code.screen_out_pay)}
        action = {"action": "FIXED_SCREEN_OUT_PAYMENT", "slots": code.screen_out_slots, **pay}
    elif code.request_return:
        action = {"action": "REQUEST_RETURN", "return_reason": code.request_return}
    else:
        way = "AUTOMATICALLY_APPROVE" if code.approve_automatically else "MANUALLY_REVIEW"
        action = {"action": way}
    if not code.add_to_group:
        return [action]
    group = {"action": "ADD_TO_PARTICIPANT_GROUP", "participant_group": code.add_to_group}
    return [action, group]


def _filter(one: Filter) -> dict[str, Any]:
    if one.values:
        return {"filter_id": one.filter_id, "selected_values": list(one.values)}
    ends = {"lower": one.lower, "upper": one.upper}
    selected = {name: float(end) for name, end in ends.items() if end is not None}
    return {"filter_id": one.filter_id, "selected_range": selected}


def study_of(body: dict[str, Any]) -> PostedStudy:
    """A study as it stands there."""
    return PostedStudy(
        id=body["id"],
        state=STUDY_STATES.get(body["status"], StudyState.UNKNOWN),
        places=int(body.get("total_available_places") or 0),
        token=body.get("internal_name") or "",
    )


def submission_of(body: dict[str, Any], *, study: str = "") -> Submission:
    """A submission, of a list or by itself; only the latter has its bonuses."""
    return Submission(
        id=body["id"],
        study=body.get("study_id") or study,
        participant=body.get("participant") or body.get("participant_id") or "",
        state=SUBMISSION_STATES.get(body["status"], SubmissionState.UNKNOWN),
        code=body.get("entered_code") or body.get("study_code") or "",
        started_at=_moment(body.get("started_at")),
        completed_at=_moment(body.get("completed_at")),
        return_requested=bool(body.get("return_requested")),
        bonuses=tuple(map(major, body.get("bonus_payments") or ())),
    )


def _moment(said: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(said) if said else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
