"""What the fake remembers: money, studies, submissions, bonuses, groups, messages and webhooks.

Webhooks have one secret, subscriptions that are silent until they are confirmed, and events that
are sent as they say, or as a test wants them to go wrong: `lose` (never sent), `double` (one try
that arrives twice), `late` (an hour later, so that others overtake it), `forge` (signed with
another secret); '' sends one as it should be.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import requests

SUBMISSION, STUDY = "submission.status.change", "study.status.change"
TRIES, FIRST_WAIT = 11, timedelta(minutes=1)
DISABLED_AFTER = timedelta(days=5)
LATE = timedelta(hours=1)

Send = Callable[[str, dict[str, str], bytes], int]


@dataclass
class Subscription:
    id: str
    event_type: str
    target_url: str
    workspace: str
    confirmation: str
    is_enabled: bool = False
    failing_since: datetime | None = None

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "event_type": self.event_type,
            "target_url": self.target_url,
            "is_enabled": self.is_enabled,
            "workspace_id": self.workspace,
        }


@dataclass
class Delivery:
    event_id: str
    subscription: Subscription
    body: bytes
    due: datetime
    is_forged: bool = False
    n_tries: int = 0
    # Of a try, however often it arrives.
    sent_at: str = ""


class Hooks:
    def __init__(self) -> None:
        self.secret = ""
        self.subscriptions: dict[str, Subscription] = {}
        self.pending: list[Delivery] = []
        self.fates: list[str] = []
        self.sent: list[tuple[str, int]] = []
        self._announced: dict[str, str] = {}

    def observe(
        self, kind: str, key: str, status: str, facts: dict[str, Any], at: datetime
    ) -> None:
        """Announce a status that is another than before; that of what is new isn't a change."""
        before = self._announced.get(key)
        self._announced[key] = status
        if before in (None, status):
            return
        body = json.dumps({"event_type": kind, "resource_id": key, "status": status} | facts)
        for each in self.subscriptions.values():
            if each.is_enabled and each.event_type == kind:
                self._plan(each, body.encode(), at)

    def _plan(self, subscription: Subscription, body: bytes, at: datetime) -> None:
        fate = self.fates.pop(0) if self.fates else ""
        due = at + LATE if fate == "late" else at
        planned = Delivery(
            secrets.token_hex(12), subscription, body, due, is_forged=fate == "forge"
        )
        self.pending += [planned] * {"lose": 0, "double": 2}.get(fate, 1)

    def take_due(self, now: datetime) -> list[Delivery]:
        due = [each for each in self.pending if each.due <= now]
        self.pending = [each for each in self.pending if each.due > now]
        return due

    def deliver(self, delivery: Delivery, now: datetime, send: Send) -> None:
        subscription = delivery.subscription
        if not subscription.is_enabled:
            return
        delivery.sent_at = delivery.sent_at or str(int(time.time()))
        status = send(subscription.target_url, self._headers(delivery), delivery.body)
        self.sent.append((delivery.event_id, status))
        if 200 <= status < 300:
            subscription.failing_since = None
            return
        subscription.failing_since = subscription.failing_since or now
        if now - subscription.failing_since >= DISABLED_AFTER:
            subscription.is_enabled = False
        delivery.n_tries += 1
        delivery.sent_at = ""  # each try is signed with its own time
        if delivery.n_tries < TRIES and not delivery.is_forged:
            delivery.due = now + FIRST_WAIT * 2 ** (delivery.n_tries - 1)
            self.pending.append(delivery)

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        sent_at = delivery.sent_at
        secret = "somebody else's" if delivery.is_forged else self.secret
        digest = hmac.digest(secret.encode(), sent_at.encode() + delivery.body, hashlib.sha256)
        return {
            "Content-Type": "application/json",
            "X-Prolific-Request-Timestamp": sent_at,
            "X-Prolific-Request-Signature": base64.b64encode(digest).decode(),
            "X-Event-ID": delivery.event_id,
            "X-Timestamp": sent_at,
        }


def send_by_http(url: str, headers: dict[str, str], body: bytes) -> int:
    """Send to a server on this machine, where a fake belongs; 0 where nobody answers."""
    if not url.startswith(("http://127.0.0.1:", "http://localhost:")):
        return 0
    try:
        return requests.post(url, body, headers=headers, timeout=10).status_code
    except requests.RequestException:
        return 0


FEE = Fraction(1, 3)
REVIEW_TIME = timedelta(days=21)
OPEN = {"RESERVED", "ACTIVE", "AWAITING REVIEW", "PROCESSING"}
GONE = {"REJECTED", "RETURNED", "TIMED-OUT", "SCREENED OUT"}
RUNNING = {"ACTIVE", "PAUSED", "AWAITING REVIEW"}


class Denied(Exception):
    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(str(detail))
        self.status, self.detail = status, detail


def new_id() -> str:
    return secrets.token_hex(12)


@dataclass
class Submission:
    id: str
    study: "Study"
    participant: str
    started_at: datetime
    status: str = "ACTIVE"
    entered_code: str | None = None
    completed_at: datetime | None = None
    return_requested: datetime | None = None
    bonuses: list[Fraction] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        def said(moment: datetime | None) -> str | None:
            return moment.isoformat() if moment else None

        return {
            "id": self.id,
            "participant": self.participant,
            "participant_id": self.participant,
            "study_id": self.study.id,
            "status": self.status,
            "entered_code": self.entered_code,
            "study_code": self.entered_code,
            "started_at": said(self.started_at),
            "completed_at": said(self.completed_at),
            "return_requested": said(self.return_requested),
            "bonus_payments": [int(amount) for amount in self.bonuses],
        }


@dataclass
class Study:
    """A study; `held` counts the places whose pay is set aside."""

    id: str
    facts: dict[str, Any]
    status: str = "UNPUBLISHED"
    held: int = 0

    @property
    def places(self) -> int:
        return int(self.facts["total_available_places"])

    @property
    def unit(self) -> Fraction:
        return Fraction(self.facts["reward"]) * (1 + FEE)

    def shown(self) -> dict[str, Any]:
        return self.facts | {"id": self.id, "status": self.status}


@dataclass
class BonusRun:
    rows: list[tuple[Submission, Fraction]]

    @property
    def amount(self) -> Fraction:
        return sum((amount for _, amount in self.rows), Fraction())

    @property
    def total(self) -> Fraction:
        return self.amount * (1 + FEE)


class World:
    """One researcher's workspace. `available` moves with each step; `check` counts it anew."""

    def __init__(self, deposit: int = 100_000) -> None:
        self.deposits = self.available = Fraction(deposit)
        self.paid: list[tuple[str, str, Fraction]] = []
        self.user, self.workspace, self.project = new_id(), new_id(), new_id()
        self.projects = [{"id": self.project, "title": "Project"}]
        self.studies: dict[str, Study] = {}
        self.submissions: dict[str, Submission] = {}
        self.bonuses: dict[str, BonusRun] = {}
        self.groups: dict[str, set[str]] = {}
        self.messages: list[dict[str, Any]] = []
        self.hooks = Hooks()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def find(self, kind: str, key: str) -> Any:
        try:
            return getattr(self, kind)[key]
        except KeyError:
            raise Denied(404, "Not found.") from None

    def of(self, study: Study) -> list[Submission]:
        return [each for each in self.submissions.values() if each.study is study]

    # money

    def hold(self, study: Study, places: int) -> None:
        """Set aside the pay of more places, or with a negative number set it free."""
        if places * study.unit > self.available:
            raise Denied(400, "Your balance is too low.")
        study.held += places
        self.available -= places * study.unit

    def change_reward(self, study: Study, reward: int) -> None:
        """The researcher changes what a participation is paid, on Prolific's own page. Whoever was
        approved before is paid the rest."""
        held, before = study.held, study.unit
        self.hold(study, -held)
        study.facts["reward"] = reward
        self.hold(study, held)
        for each in self.of(study):
            if each.status == "APPROVED" and study.unit > before:
                self.pay("adjustment", each, study.unit - before)

    def pay(self, kind: str, submission: Submission, amount: Fraction) -> None:
        if amount > self.available:
            raise Denied(400, "Your balance is too low.")
        self.available -= amount
        self.paid.append((kind, submission.id, amount))

    def check(self) -> None:
        paid = sum((amount for _, _, amount in self.paid), Fraction())
        reserved = sum((study.held * study.unit for study in self.studies.values()), Fraction())
        if self.available != self.deposits - paid - reserved:
            raise AssertionError(f"{self.available} != {self.deposits} - {paid} - {reserved}")
        twice = Counter(one for kind, one, _ in self.paid if kind == "reward")
        if any(count > 1 for count in twice.values()):
            raise AssertionError(f"rewards paid twice: {twice}")

    def announce(self) -> None:
        for study in self.studies.values():
            self.hooks.observe(STUDY, study.id, study.status, {}, self.now)
        for each in self.submissions.values():
            facts = {"participant_id": each.participant}
            self.hooks.observe(SUBMISSION, each.id, each.status, facts, self.now)

    # what participants do

    def arrive(self, study: Study, participant: str | None = None) -> Submission:
        taken = [each for each in self.of(study) if each.status not in GONE]
        if study.status != "ACTIVE" or len(taken) >= study.places:
            raise Denied(400, "The study has no places.")
        if participant and participant in self._excluded(study):
            raise Denied(400, "The study excludes a group that the participant is in.")
        made = Submission(new_id(), study, participant or new_id(), self.now)
        self.submissions[made.id] = made
        return made

    def _excluded(self, study: Study) -> set[str]:
        filters = study.facts.get("filters", [])
        blocking = [one for one in filters if one["filter_id"] == "participant_group_blocklist"]
        groups = [group for one in blocking for group in one["selected_values"]]
        return set().union(*(self.groups.get(group, set()) for group in groups))

    def leave(self, submission: Submission, status: str = "RETURNED") -> None:
        if submission.status not in OPEN:
            raise Denied(400, f"The submission is {submission.status}.")
        submission.status = status
        self._free(submission.study)

    def enter(self, submission: Submission, code: str) -> None:
        if submission.status not in {"RESERVED", "ACTIVE", "TIMED-OUT"}:
            raise Denied(400, f"The submission is {submission.status}.")
        submission.entered_code, submission.completed_at = code, self.now
        submission.status = "AWAITING REVIEW"
        known = submission.study.facts["completion_codes"]
        for action in next((each["actions"] for each in known if each["code"] == code), []):
            self._act(submission, action)
        self._fill(submission.study)

    def _act(self, submission: Submission, action: dict[str, Any]) -> None:
        name = action["action"]
        if name == "AUTOMATICALLY_APPROVE":
            self.approve(submission)
        elif name == "REQUEST_RETURN":
            submission.return_requested = self.now
        elif name == "ADD_TO_PARTICIPANT_GROUP":
            self.find("groups", action["participant_group"]).add(submission.participant)
        elif name == "REMOVE_FROM_PARTICIPANT_GROUP":
            self.find("groups", action["participant_group"]).discard(submission.participant)
        elif name == "FIXED_SCREEN_OUT_PAYMENT":
            self._screen_out(submission, action)

    def _screen_out(self, submission: Submission, action: dict[str, Any]) -> None:
        submission.status = "SCREENED OUT"
        self.pay("screen-out", submission, Fraction(action["fixed_screen_out_reward"]) * (1 + FEE))
        used = [each for each in self.of(submission.study) if each.status == "SCREENED OUT"]
        if len(used) >= action["slots"]:
            submission.study.status = "PAUSED"

    # what reviewing does

    def approve(self, submission: Submission) -> None:
        """Pay a submission; a late or reversed one beyond the places is paid from the balance."""
        if submission.status == "APPROVED":
            return
        if submission.status in {"RESERVED", "ACTIVE"}:
            raise Denied(400, f"The submission is {submission.status}.")
        study = submission.study
        if study.held:
            self.hold(study, -1)
        self.pay("reward", submission, study.unit)
        submission.status = "APPROVED"
        self._fill(study)

    def reject(self, submission: Submission) -> None:
        if submission.status == "REJECTED":
            return
        if submission.status != "AWAITING REVIEW":
            raise Denied(400, f"The submission is {submission.status}.")
        submission.status = "REJECTED"
        self._free(submission.study)

    def pass_time(self, time: timedelta) -> None:
        self.now += time
        for each in list(self.submissions.values()):
            allowed = timedelta(minutes=each.study.facts.get("maximum_allowed_time", 60))
            if each.status in {"RESERVED", "ACTIVE"} and self.now > each.started_at + allowed:
                self.leave(each, "TIMED-OUT")
            waited = each.completed_at and self.now - each.completed_at
            if each.status == "AWAITING REVIEW" and waited and waited >= REVIEW_TIME:
                self.approve(each)

    def _free(self, study: Study) -> None:
        if study.status == "COMPLETED" and study.held:
            self._release(study)
        elif study.status == "AWAITING REVIEW":
            study.status = "ACTIVE"

    def _fill(self, study: Study) -> None:
        states = [each.status for each in self.of(study) if each.status not in GONE]
        if study.status in RUNNING and len(states) >= study.places:
            if set(states) == {"APPROVED"}:
                study.status = "COMPLETED"
                self._release(study)
            elif not {"RESERVED", "ACTIVE"} & set(states):
                study.status = "AWAITING REVIEW"

    def _release(self, study: Study) -> None:
        open_places = sum(each.status in OPEN for each in self.of(study))
        self.hold(study, -max(0, study.held - open_places))

    def stop(self, study: Study) -> None:
        """Let nobody in any more; pay stays set aside for those at work and under review."""
        study.status = "COMPLETED"
        self._release(study)
