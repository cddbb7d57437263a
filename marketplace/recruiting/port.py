"""What the marketplace asks of a recruiter: whoever finds, screens and pays the participants.

The core speaks this and nothing else of Prolific or a panel. Two rules hold for every
implementation. A method that changes something over there makes one attempt and never repeats it:
the core keeps what it intended, and after `Uncertain` it looks (`study`, `submission`,
`find_studies`) before it does anything again. And amounts are `Decimal` in the major unit of the
recruiter's own currency: pounds, not pence.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Flag, auto
from typing import Protocol

from marketplace.recruiting.records import (
    Account,
    Arrival,
    Bonus,
    Cost,
    Demographics,
    Event,
    PostedStudy,
    PreparedBonus,
    StudyDraft,
    Submission,
    Verdict,
    WayBack,
)


class Capability(Flag):
    """What a recruiter can do; the pages offer nothing else."""

    NONE = 0
    DRAFT = auto()
    COST = auto()
    PUBLISH = auto()
    PAUSE = auto()
    STOP = auto()
    PLACES = auto()
    SUBMISSIONS = auto()
    DECIDE = auto()
    REQUEST_RETURN = auto()
    SCREEN_OUT_PAY = auto()
    BONUS = auto()
    MESSAGE = auto()
    GROUPS = auto()
    SIGNED_ARRIVALS = auto()
    WEBHOOKS = auto()
    DEMOGRAPHICS = auto()


class Recruiter(Protocol):
    """One recruiter's account. Methods raise `RecruiterProblem` and nothing else of the network."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capability: ...

    def check_credentials(self) -> Account: ...

    def draft(self, draft: StudyDraft) -> PostedStudy: ...

    def find_studies(self, token: str, project: str = "") -> Sequence[PostedStudy]:
        """Return studies drafted with our token: one too many when an answer was lost twice."""

    def delete_draft(self, study: str) -> None: ...

    def study(self, study: str) -> PostedStudy: ...

    def cost(self, reward: Decimal, places: int) -> Cost: ...

    def publish(self, study: str) -> None: ...

    def pause(self, study: str) -> None: ...

    def resume(self, study: str) -> None: ...

    def stop(self, study: str) -> None: ...

    def set_places(self, study: str, total: int) -> None:
        """Set the total, never an addition: said twice, it is the same."""

    def submissions(self, study: str) -> Iterable[Submission]: ...

    def submission(self, submission: str) -> Submission: ...

    def decide(self, submission: str, verdict: Verdict) -> None: ...

    def bonus_prepare(self, study: str, bonuses: Sequence[Bonus]) -> PreparedBonus: ...

    def bonus_pay(self, prepared: str) -> None:
        """Pay once. After `Uncertain` only `submission(…).bonuses` tells: never call again."""

    def message(self, study: str, participant: str, text: str) -> None: ...

    def create_group(self, name: str, participants: Sequence[str] = ()) -> str: ...

    def find_group(self, group: str) -> None:
        """NotFound where it is not there any more."""

    def add_to_group(self, group: str, participants: Sequence[str]) -> None: ...

    def remove_from_group(self, group: str, participants: Sequence[str]) -> None: ...

    def verify_arrival(
        self, study: str, parameters: Mapping[str, str], *, url: str, now: datetime
    ) -> Arrival:
        """Return who arrived at `study`, whose page is `url`, or raise `NotVerified`."""

    def way_back(self, code: str) -> WayBack: ...

    def webhook_secret(self) -> str:
        """Return the secret that webhooks are signed with, made where there is none."""

    def subscribe(self, address: str) -> None:
        """Have news sent to `address`; where they are sent already, nothing changes."""

    def unsubscribe(self, address: str) -> None:
        """Have no news sent to `address` any more."""

    def verify_webhook(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Event:
        """Return what the body received says, or raise `NotVerified`."""

    def demographics(self, study: str) -> Iterable[Demographics]: ...
