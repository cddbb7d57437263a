"""What can go wrong in hits.

HitsError
├── ProfileUnknown           no marketplace of that name is configured
├── ConnectionUnfit          a connection to a marketplace cannot be stored as it is
├── CredentialsMissing       no access key for the marketplace
├── MarketplaceUnreachable   nobody answers at the endpoint
├── MarketplaceRefused       the marketplace answered with an error
├── MarketplaceSlow          the marketplace used up the time that its calls have in one run
├── MarketplaceFault         the marketplace answered with what cannot be
├── NothingPublished         none of a study's items was ever sent to a marketplace
├── BatchUnfit               a batch's settings cannot be published
│   └── LaunchedMeanwhile    another launch took items that this one was made for
├── OverBudget               a team's, study's or batch's budget does not reach
├── FundsMissing             the requester's account cannot pay for a batch
├── QuestionTooLarge         an item makes more XML than a marketplace takes
├── AnswerUnreadable         what came back is not an answer to the item
├── AlreadyJudged            a worker answered one item twice in a round
├── FeedbackUnfit            a decision's feedback cannot be sent
├── AssignmentRefused        something that one assignment cannot have
│   ├── DecisionRefused      a decision that this assignment cannot have, or not any more
│   └── PaymentRefused       an amount that cannot be paid, or is paid already
├── BonusFileRefused         a file of bonuses holds something that cannot be paid
├── AssignmentsUnknown       a study has no assignments of these ids
├── WorkerUnknown            a study has no worker of that id
├── SummaryOutdated          the decisions to send are not those of the summary any more
├── ChangeUnfit              a batch that is out cannot be changed so
├── RecruitingRefused        a recruiter's study cannot be had, or changed, so
├── StudyUnfinished          a study cannot be archived while something of it goes on
└── CrowdStuck               the worker site did not show what a worker needs
"""

from collections.abc import Container
from typing import Any

from django.utils.translation import gettext as _

from accounts.roles import Permission
from error_codes import CorrectableError, require as require

REQUEST_ERRORS = ("RequestError", "ValidationException")
MOMENTARY_ERRORS = ("ThrottlingException", "Throttling", "ServiceFault", "ServiceUnavailable")


class HitsError(CorrectableError):
    """Something a person can mend; its text says what and how."""


class ProfileUnknown(HitsError):
    """No marketplace of that name is configured."""


class ConnectionUnfit(HitsError):
    """A connection to a marketplace cannot be stored as it is."""


class CredentialsMissing(HitsError):
    """No access key for the marketplace."""


class MarketplaceUnreachable(HitsError):
    """Nobody answers at the endpoint."""


class MarketplaceRefused(HitsError):
    """The marketplace answered with an error; `code` is its TurkErrorCode, or AWS's own.

    `is_retried` where boto3 had sent the request before and got no answer that it could read.
    """

    def __init__(
        self, code: str, message: str, *, address: str = "", is_retried: bool = False
    ) -> None:
        self.code, self.message, self.is_retried = code, message, is_retried
        text = (
            _("The marketplace at {address} refused ({code}): {message}")
            if address
            else _("The marketplace refused ({code}): {message}")
        )
        super().__init__(text.format(address=address, code=code, message=message))

    def has_code(self, name: str) -> bool:
        return self.code.rsplit(".", 1)[-1].lower() == name.lower()

    @property
    def is_about_request(self) -> bool:
        # What was requested, not the requester or the moment.
        return self.code.startswith("AWS.MechanicalTurk.") or self.code in REQUEST_ERRORS

    @property
    def is_momentary(self) -> bool:
        return any(map(self.has_code, MOMENTARY_ERRORS))


class MarketplaceSlow(HitsError):
    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or _("The marketplace took so long over its answers that the rest is left for later.")
        )


class MarketplaceFault(HitsError):
    """The marketplace answered with what cannot be; nothing of the answer is stored."""

    def __init__(self, problem: str, *, code: str = "") -> None:
        super().__init__(
            _("The marketplace's answer cannot be right: {problem}.").format(problem=problem),
            code=code,
        )


class NothingPublished(HitsError):
    def __init__(self, slug: str) -> None:
        super().__init__(
            _(
                "Study '{slug}' has no HITs on a marketplace yet. Publish it first: "
                "`python manage.py publish_study {slug} --reward USD`."
            ).format(slug=slug)
        )


class BatchUnfit(HitsError):
    """A batch's settings cannot be published."""


class LaunchedMeanwhile(BatchUnfit):
    """Another launch, or an import, made something else of what this one was made for."""


class OverBudget(HitsError):
    """A team's, study's or batch's budget does not reach."""


class FundsMissing(HitsError):
    """The requester's account cannot pay for a batch."""


class QuestionTooLarge(HitsError):
    """An item makes more XML than a marketplace takes."""


class AnswerUnreadable(HitsError):
    def __init__(self, problem: str, *, code: str = "") -> None:
        super().__init__(
            _("The answer cannot be read: {problem}.").format(problem=problem), code=code
        )


class AlreadyJudged(HitsError):
    """A worker answered one item twice in a round."""


class FeedbackUnfit(HitsError):
    """A decision's feedback cannot be sent."""


class AssignmentRefused(HitsError):
    """Something that one assignment cannot have; its text names the assignment, if any."""

    def __init__(self, message: str, *, assignment: Any = None, code: str = "") -> None:
        self.message, self.assignment = message, assignment
        named = f"{assignment.assignment_id}: " if assignment else ""
        super().__init__(f"{named}{message}", code=code)

    @property
    def without_id(self) -> str:
        return f"{self.assignment.pk}: {self.message}" if self.assignment else self.message

    def text_for(self, permissions: Container[str]) -> str:
        return str(self) if Permission.VIEW_WORKERS in permissions else self.without_id


class DecisionRefused(AssignmentRefused):
    """A decision that this assignment cannot have, or not any more."""


class PaymentRefused(AssignmentRefused):
    """An amount that cannot be paid, or is paid already."""


class BonusFileRefused(HitsError):
    """A file of bonuses holds something that cannot be paid."""


class AssignmentsUnknown(HitsError):
    def __init__(self, slug: str, ids: list[str]) -> None:
        super().__init__(
            _(
                "Study '{slug}' has collected no assignment {names}. Collect first: "
                "`python manage.py collect_study {slug}`."
            ).format(slug=slug, names=", ".join(ids[:5]) + (", ..." if len(ids) > 5 else ""))
        )


class WorkerUnknown(HitsError):
    """A study has no worker of that id."""


class SummaryOutdated(HitsError):
    """The decisions to send are not those of the summary any more."""


class RecruitingRefused(HitsError):
    """A recruiter's study cannot be had, or changed, so."""


class StudyUnfinished(HitsError):
    """A study cannot be archived while something of it goes on."""


class CrowdStuck(HitsError):
    """The worker site did not show what a worker needs."""


class ChangeUnfit(HitsError):
    """A batch that is out cannot be changed so."""


class RehearsalUnfit(HitsError):
    """A study that cannot be rehearsed."""
