"""A researcher's workspace at Prolific, by its API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from marketplace.recruiting.problems import (
    NotFound,
    NotVerified,
    Refused,
    Uncertain,
    Unreachable,
    Unreadable,
)
from marketplace.recruiting.prolific import webhooks
from marketplace.recruiting.prolific.demographics import demographics_of
from marketplace.recruiting.prolific.transport import Transport
from marketplace.recruiting.prolific.words import (
    currency_of,
    draft_body,
    id_of,
    is_id,
    major,
    mapping_of,
    minor,
    price_of,
    study_of,
    submission_of,
)
from marketplace.recruiting.records import (
    UNREADABLE_SUBMISSION,
    Account,
    Approval,
    Bonus,
    Cost,
    Demographics,
    Event,
    PostedStudy,
    PreparedBonus,
    Rejection,
    StudyDraft,
    Submission,
    SubmissionState,
    Verdict,
)

Row = TypeVar("Row")
MOST_BONUSES = 200
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
        rows = self._api.pages(f"/workspaces/{_id(self._workspace)}/projects/", {})
        projects = tuple(id_of(mapping_of(each)) for each in rows)
        name = mapping_of(user).get("name") or user.get("email") or ""
        return Account(
            id=id_of(user),
            name=name if isinstance(name, str) else "",
            currency=currency_of(balance),
            available=major(balance.get("available_balance")),
            workspace=self._workspace,
            project=next(iter(projects), ""),
            projects=projects,
        )

    def draft(self, draft: StudyDraft) -> PostedStudy:
        made = self._api.change("POST", "/studies/", draft_body(draft))
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

    def publish(self, study: str) -> None:
        self._move(study, "PUBLISH")

    def pause(self, study: str) -> None:
        self._move(study, "PAUSE")

    def resume(self, study: str) -> None:
        self._move(study, "START")

    def stop(self, study: str) -> None:
        self._move(study, "STOP")

    def set_places(self, study: str, total: int) -> None:
        """Set the total, never an addition: said twice, it is the same."""
        self._api.change("PATCH", f"/studies/{_id(study)}/", {"total_available_places": total})

    def submissions(self, study: str) -> Iterator[Submission]:
        rows = self._api.pages("/submissions/", {"study": study})
        for row in rows:
            try:
                yield submission_of(row, study=study)
            except Unreadable:
                yield UNREADABLE_SUBMISSION

    def submission(self, submission: str) -> Submission:
        return submission_of(self._api.read(f"/submissions/{_id(submission)}/"))

    def decide(self, submission: str, verdict: Verdict) -> None:
        path = f"/submissions/{_id(submission)}/transition/"
        self._api.change("POST", path, _transition(verdict))

    def bonus_prepare(self, study: str, bonuses: Sequence[Bonus]) -> PreparedBonus:
        if not 1 <= len(bonuses) <= MOST_BONUSES:
            raise ValueError(f"bonuses must be 1 to {MOST_BONUSES}, got {len(bonuses)}")
        rows = "".join(f"{_id(one.submission)},{one.amount:.2f}\n" for one in bonuses)
        asked = {"study_id": study, "csv_bonuses": rows}
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
        facts = {"recipient_id": participant, "body": text, "study_id": study}
        self._api.change("POST", "/messages/", facts)

    def create_group(self, name: str, participants: Sequence[str] = ()) -> str:
        facts = {"workspace_id": self._workspace, "name": name}
        members = {"participant_ids": list(participants)} if participants else {}
        made = self._api.change("POST", "/participant-groups/", facts | members)
        try:
            return id_of(mapping_of(made))
        except Unreadable as problem:
            raise Uncertain(str(problem)) from problem

    def find_group(self, group: str) -> None:
        """NotFound where it is not there any more."""
        self._api.read(f"/participant-groups/{_id(group)}/participants/")

    def add_to_group(self, group: str, participants: Sequence[str]) -> None:
        self._change_group("POST", group, participants)

    def remove_from_group(self, group: str, participants: Sequence[str]) -> None:
        self._change_group("DELETE", group, participants)

    def verify_arrival(self, study: str, parameters: Mapping[str, str]) -> None:
        """Ask Prolific for the submission that the link names: participant and study are its.
        NotVerified if they are not, or the submission is not under way."""
        session = parameters.get("SESSION_ID", "")
        try:
            found = self.submission(session)
        except (NotFound, ValueError):
            raise NotVerified("Prolific knows no submission of this id.") from None
        same = (found.id, found.participant, found.study)
        if same != (session, parameters.get("PROLIFIC_PID"), study):
            raise NotVerified("The submission is another participant's, or of another study.")
        if found.state not in HERE:
            raise NotVerified(f"The submission is {found.state.value.replace('_', ' ')}.")

    def webhook_secret(self) -> str:
        return webhooks.find_secret(self._api, self._workspace)

    def subscribe(self, address: str) -> None:
        webhooks.subscribe(self._api, self._workspace, address)

    def unsubscribe(self, address: str) -> None:
        webhooks.unsubscribe(self._api, self._workspace, address)

    def verify_webhook(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Event:
        return webhooks.verify_event(self._webhook_secret, headers, body, now=now)

    def demographics(self, study: str) -> Iterable[Demographics]:
        content = self._api.change("POST", f"/studies/{_id(study)}/demographic-export/", {})
        if not isinstance(content, str):
            raise Refused("Prolific's answer holds no demographics.")
        return demographics_of(content)

    @cached_property
    def _currency(self) -> str:
        return currency_of(self._balance())

    def _balance(self) -> Mapping[str, Any]:
        return mapping_of(self._api.read(f"/workspaces/{_id(self._workspace)}/balance/"))

    def _move(self, study: str, action: str) -> None:
        self._api.change("POST", f"/studies/{_id(study)}/transition/", {"action": action})

    def _change_group(self, method: str, group: str, participants: Sequence[str]) -> None:
        path = f"/participant-groups/{_id(group)}/participants/"
        self._api.change(method, path, {"participant_ids": list(participants)})


def _readable(read: Callable[[Any], Row], rows: Iterable[Any]) -> Iterator[Row]:
    """Those rows that can be read: one of which not even the id is told is nobody's here."""
    for row in rows:
        with suppress(Unreadable):
            yield read(row)


def _id(said: str) -> str:
    """An id as part of an address: what a link says cannot name another place."""
    if not is_id(said):
        raise ValueError(f"an id has letters, digits and dashes alone, got {said!r}")
    return said


def _transition(verdict: Verdict) -> dict[str, str]:
    if isinstance(verdict, Rejection):
        category = verdict.category.value
        return {"action": "REJECT", "message": verdict.message, "rejection_category": category}
    return {"action": "APPROVE" if isinstance(verdict, Approval) else "UNREJECT"}
