"""A researcher's workspace at Prolific, by its API."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from error_codes import require
from marketplace.models import RecruitedStudy
from marketplace.recruiting.prolific.transport import Transport
from marketplace.recruiting.prolific.words import (
    TRANSITIONS,
    currency_of,
    demographics_of,
    draft_body,
    id_of,
    is_id,
    major,
    mapping_of,
    minor,
    price_of,
    rows_of,
    secret_of,
    study_of,
    submission_of,
)
from marketplace.recruiting.records import (
    UNREADABLE_SUBMISSION,
    Account,
    Cost,
    Event,
    Filter,
    NotFound,
    NotVerified,
    PostedStudy,
    PreparedBonus,
    Refused,
    RejectionCategory,
    Submission,
    SubmissionState,
    Uncertain,
    Unreachable,
    Unreadable,
)

# Prolific's webhooks: subscriptions of a workspace, and the signature of what is sent.
#
# A workspace has one secret, and making another ends the first; so it is asked for before one is
# made, and whoever else uses the workspace goes on with the same. A subscription sends nothing
# until it was confirmed with a word that stands in the answer's header alone: one whose answer was
# lost is deleted and made anew.

SUBMISSION, STUDY = "submission.status.change", "study.status.change"
SIGNATURE, SENT_AT = "X-Prolific-Request-Signature", "X-Prolific-Request-Timestamp"
CONFIRMATION = "X-Hook-Secret"
# What is not received is sent again for a day or two; a clock may be a little ahead.
OLDEST, NEWEST = timedelta(days=2), timedelta(minutes=5)
LONGEST_KIND = 100
MOST_SUBSCRIPTIONS = 100


def signed(secret: str, sent_at: str, body: bytes) -> str:
    return base64.b64encode(
        hmac.digest(secret.encode(), sent_at.encode() + body, hashlib.sha256)
    ).decode()


def _event(event_id: str, body: bytes) -> Event:
    try:
        facts = json.loads(body)
    except (ValueError, RecursionError):
        raise NotVerified("The body is no JSON.") from None
    if not isinstance(facts, dict):
        raise NotVerified("The event has no facts.")
    kind, resource = str(facts.get("event_type", ""))[:LONGEST_KIND], facts.get("resource_id")
    require(kind.isprintable(), NotVerified("The event's type is no word."))
    if not isinstance(resource, str) or not is_id(resource):
        return Event(event_id, kind)
    # Only a submission has a participant, whose id is left unread.
    if kind == SUBMISSION or "participant_id" in facts:
        return Event(event_id, kind or SUBMISSION, submission=resource)
    return Event(event_id, kind, study=resource)


Row = TypeVar("Row")
HERE = (SubmissionState.RESERVED, SubmissionState.ACTIVE)


class Prolific:
    """One workspace. `Transport` decides what a missing answer means.

    Methods raise `RecruiterProblem` and nothing else of the network. A method that changes
    something over there makes one attempt and never repeats it: the core keeps what it intended,
    and after `Uncertain` it looks (`study`, `submission`, `find_studies`) before it does anything
    again.
    Amounts are `Decimal` in the major unit of the account's currency: pounds, not pence.
    """

    name = "Prolific"

    def __init__(self, transport: Transport, *, workspace: str, webhook_secret: str = "") -> None:
        self._api, self._workspace = transport, workspace
        self._webhook_secret = webhook_secret

    def check_credentials(self) -> Account:
        user = self._api.read("/users/me/")
        try:
            balance = self._balance()
        except NotFound as problem:
            text = _("Prolific has no workspace {workspace} that this token may use.")
            raise NotFound(text.format(workspace=self._workspace)) from problem
        projects = tuple(
            id_of(mapping_of(each))
            for each in self._api.pages(f"/workspaces/{_id(self._workspace)}/projects/", {})
        )
        name = mapping_of(user).get("name") or user.get("email") or ""
        return Account(
            name=name if isinstance(name, str) else "",
            currency=currency_of(balance),
            available=major(balance.get("available_balance")),
            project=next(iter(projects), ""),
            projects=projects,
        )

    def draft(
        self, study: RecruitedStudy, filters: Sequence[Filter], *, url: str, project: str
    ) -> PostedStudy:
        made = self._api.change(
            "POST", "/studies/", draft_body(study, filters, url=url, project=project)
        )
        try:
            return study_of(made)
        except Unreadable as problem:  # it may be there: it is looked for by its token
            raise Uncertain(str(problem)) from problem

    def find_studies(self, token: str, project: str = "") -> Sequence[PostedStudy]:
        """Return studies drafted with our token: one too many when an answer was lost twice."""
        rows = self._api.pages(f"/projects/{_id(project)}/studies/", {})
        return [study for study in _readable(study_of, rows) if study.token == token]

    def delete_draft(self, study: str) -> None:
        self._api.change("DELETE", f"/studies/{_id(study)}/")

    def study(self, study: str) -> PostedStudy:
        return study_of(self._api.read(f"/studies/{_id(study)}/"))

    def cost(self, reward: Decimal, places: int) -> Cost:
        asked = {"reward": minor(reward), "total_available_places": places}
        said = self._api.change("POST", "/study-cost-calculator/", asked)
        return Cost(price_of(said, "total_cost"), self._currency)

    def move(self, study: str, transition: str) -> None:
        self._api.change(
            "POST", f"/studies/{_id(study)}/transition/", {"action": TRANSITIONS[transition]}
        )

    def set_places(self, study: str, total: int) -> None:
        """Set the total, never an addition: said twice, it is the same."""
        self._api.change("PATCH", f"/studies/{_id(study)}/", {"total_available_places": total})

    def submissions(self, study: str) -> Iterator[Submission]:
        for row in self._api.pages("/submissions/", {"study": study}):
            try:
                yield submission_of(row, study=study)
            except Unreadable:
                yield UNREADABLE_SUBMISSION

    def submission(self, submission: str) -> Submission:
        return submission_of(self._api.read(f"/submissions/{_id(submission)}/"))

    def approve(self, submission: str) -> None:
        self._decide(submission, {"action": "APPROVE"})

    def reject(self, submission: str, message: str, category: RejectionCategory) -> None:
        rejection = {"message": message, "rejection_category": category.value}
        self._decide(submission, {"action": "REJECT", **rejection})

    def take_rejection_back(self, submission: str) -> None:
        self._decide(submission, {"action": "UNREJECT"})

    def bonus_prepare(self, study: str, submission: str, amount: Decimal) -> PreparedBonus:
        asked = {"study_id": study, "csv_bonuses": f"{_id(submission)},{amount:.2f}\n"}
        said = self._api.change("POST", "/submissions/bonus-payments/", asked)
        return PreparedBonus(id_of(said), price_of(said, "total_amount"), self._currency)

    def bonus_pay(self, prepared: str) -> None:
        """Pay once. After `Uncertain` only `submission(…).bonuses` tells: never call again."""
        try:
            self._api.change("POST", f"/bulk-bonus-payments/{_id(prepared)}/pay/")
        except Unreachable as problem:
            # It was read and called busy: of the one call that pays as often as it is made,
            # that says too little.
            if problem.retry_after is not None:
                raise Uncertain(str(problem)) from problem
            raise

    def message(self, study: str, participant: str, text: str) -> None:
        self._api.change(
            "POST", "/messages/", {"recipient_id": participant, "body": text, "study_id": study}
        )

    def create_group(self, name: str) -> str:
        made = self._api.change(
            "POST", "/participant-groups/", {"workspace_id": self._workspace, "name": name}
        )
        try:
            return id_of(mapping_of(made))
        except Unreadable as problem:
            raise Uncertain(str(problem)) from problem

    def find_group(self, group: str) -> None:
        self._api.read(f"/participant-groups/{_id(group)}/participants/")

    def add_to_group(self, group: str, participants: Sequence[str]) -> None:
        self._change_group("POST", group, participants)

    def remove_from_group(self, group: str, participants: Sequence[str]) -> None:
        self._change_group("DELETE", group, participants)

    def verify_arrival(self, study: str, parameters: Mapping[str, str]) -> None:
        """Ask Prolific for the link's submission. Raises NotVerified if its participant or study
        differs, or it is not under way."""
        session = parameters.get("SESSION_ID", "")
        try:
            found = self.submission(session)
        except (NotFound, ValueError):
            raise NotVerified("Prolific knows no submission of this id.") from None
        require(
            (found.id, found.participant, found.study)
            == (session, parameters.get("PROLIFIC_PID"), study),
            NotVerified("The submission is another participant's, or of another study."),
        )
        require(
            found.state in HERE,
            NotVerified(f"The submission is {found.state.value.replace('_', ' ')}."),
        )

    def webhook_secret(self) -> str:
        workspace = {"workspace_id": self._workspace}
        for row in rows_of(self._api.read("/hooks/secrets/", workspace)):
            if row.get("workspace_id", self._workspace) == self._workspace:
                return secret_of(row)
        return secret_of(mapping_of(self._api.change("POST", "/hooks/secrets/", workspace)))

    def subscribe(self, address: str) -> None:
        for kind in (SUBMISSION, STUDY):
            if self._subscriptions(kind, address, is_enabled=True):
                continue
            for row in self._subscriptions(kind, address, is_enabled=False):
                self._unsubscribe(id_of(row))
            self._subscribe(kind, address)

    def unsubscribe(self, address: str) -> None:
        for kind in (SUBMISSION, STUDY):
            for is_enabled in (True, False):
                for row in self._subscriptions(kind, address, is_enabled=is_enabled):
                    self._unsubscribe(id_of(row))

    def verify_webhook(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Event:
        """Read the event if its signature is right and recent. Raises NotVerified."""
        sent_at, signature = headers.get(SENT_AT, ""), headers.get(SIGNATURE, "")
        if not self._webhook_secret or not hmac.compare_digest(
            signature.encode(), signed(self._webhook_secret, sent_at, body).encode()
        ):
            raise NotVerified("The signature is not Prolific's.")
        require(
            sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= 11,
            NotVerified("The time of sending is not a number of seconds."),
        )
        require(
            now - OLDEST <= datetime.fromtimestamp(int(sent_at), UTC) <= now + NEWEST,
            NotVerified("It was sent too long ago."),
        )
        # What a sender of it again cannot choose: the header's id of the event is not signed.
        return _event(hashlib.sha256(sent_at.encode() + body).hexdigest(), body)

    def demographics(self, study: str) -> dict[str, dict[str, str]]:
        content = self._api.change("POST", f"/studies/{_id(study)}/demographic-export/", {})
        if not isinstance(content, str):
            raise Refused("Prolific's answer holds no demographics.")
        return dict(demographics_of(content))

    @cached_property
    def _currency(self) -> str:
        return currency_of(self._balance())

    def _balance(self) -> Mapping[str, Any]:
        return mapping_of(self._api.read(f"/workspaces/{_id(self._workspace)}/balance/"))

    def _decide(self, submission: str, transition: Mapping[str, str]) -> None:
        self._api.change("POST", f"/submissions/{_id(submission)}/transition/", transition)

    def _subscriptions(
        self, kind: str, address: str, *, is_enabled: bool
    ) -> list[Mapping[str, Any]]:
        query = {
            "workspace_id": self._workspace,
            "enabled": str(is_enabled).lower(),
            "limit": MOST_SUBSCRIPTIONS,
            "offset": 0,
        }
        return [
            row
            for row in rows_of(self._api.read("/hooks/subscriptions/", query))
            if (row.get("event_type"), row.get("target_url")) == (kind, address)
            and bool(row.get("is_enabled")) == is_enabled
        ]

    def _subscribe(self, kind: str, address: str) -> None:
        facts = {"workspace_id": self._workspace, "event_type": kind, "target_url": address}
        made, headers = self._api.call("POST", "/hooks/subscriptions/", body=facts)
        # Their document promises a list, their own program reads an object.
        key = id_of(mapping_of(made[0] if isinstance(made, list) and made else made))
        require(
            headers.get(CONFIRMATION),
            Refused("Prolific's answer to a subscription has nothing to confirm it with."),
        )
        self._api.change("POST", f"/hooks/subscriptions/{key}/", {"secret": headers[CONFIRMATION]})

    def _unsubscribe(self, key: str) -> None:
        with suppress(NotFound):
            self._api.change("DELETE", f"/hooks/subscriptions/{key}/")

    def _change_group(self, method: str, group: str, participants: Sequence[str]) -> None:
        path = f"/participant-groups/{_id(group)}/participants/"
        self._api.change(method, path, {"participant_ids": list(participants)})


def _readable(read: Callable[[Any], Row], rows: Iterable[Any]) -> Iterator[Row]:
    for row in rows:
        with suppress(Unreadable):
            yield read(row)


def _id(said: str) -> str:
    # An id in an address cannot name another place.
    require(is_id(said), ValueError(f"an id has letters, digits and dashes alone, got {said!r}"))
    return said
