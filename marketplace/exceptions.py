"""What can go wrong in marketplace.

MarketplaceError
+-- InvalidAmount                a sum of money that is not one
+-- DuplicateDeposit             a form or a reference that another deposit has used
+-- DepositSpent                 it can't be taken out again
+-- NameTaken                    a person's or requester's name already in use
+-- InsufficientFunds            the requester's balance doesn't cover it
+-- PaidByRecruiter              the ledger moves no money for participants
+-- NotOffered                   part of the protocol that isn't here yet
+-- Missing
|   +-- HitDoesNotExist
|   +-- HitTypeDoesNotExist
|   +-- AssignmentDoesNotExist
|   +-- HitLayoutDoesNotExist
|   +-- QualificationTypeDoesNotExist
|   +-- QualificationDoesNotExist
|   +-- QualificationRequestDoesNotExist
|   +-- RequesterDoesNotExist
|   +-- DepositDoesNotExist
|   +-- AccessKeyDoesNotExist
|   +-- ChannelDoesNotExist
+-- HitAlreadyExists             a unique request token came twice
+-- DuplicateRequest             the same, where it was for a bonus or an extension
+-- QualificationTypeAlreadyExists
+-- InvalidParameter             well-formed, yet not acceptable
+-- NotificationUndeliverable    this marketplace can't send in that way
+-- InvalidQuestion              the question's XML
+-- InvalidPayoutFile            it doesn't agree with the ledger
+-- InvalidStatusFile            of participants: it says what can't be, by line
+-- TooManyKeys
+-- BridgeUnfit                  it can't lead programs to where it was told to
+-- RecruiterBusy                another process calls this account
+-- InvalidHitState
+-- InvalidAssignmentState
+-- InvalidQualificationState
+-- InvalidQualificationTypeState
+-- InvalidQualificationRequestState
+-- InvalidMaximumAssignmentsIncrease
+-- ProtocolError                not a matter of this app's: signatures, types, rates
+-- WorkRefused                  what a worker asked for can't be had; raised itself, with a
    |                            code, where no caller tells the case from others
    +-- NoAssignmentsLeft
    +-- AlreadyWorkedOn
    +-- AssignmentClosed         returned or run out of time
    +-- NotQualified
    +-- RequestRefused           of a qualification
    +-- DraftChanged             saved from another tab or device meanwhile
    +-- ErasureRefused           work or money is open
    +-- ChannelClosed            a link that leads nowhere, or not any more
    +-- ParticipantUnknown       a panel's link that doesn't say who comes
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from django.utils.translation import gettext as _

from error_codes import CodedError, require as require

if TYPE_CHECKING:
    from django.db.models import QuerySet

Row = TypeVar("Row")


class MarketplaceError(CodedError):
    """Something a person can fix; its text says what and how."""


class InvalidAmount(MarketplaceError, ValueError): ...


class DuplicateDeposit(MarketplaceError): ...


class DepositSpent(MarketplaceError):
    def __init__(self, amount_usd: Decimal, available_usd: Decimal) -> None:
        super().__init__(
            _(
                "The deposit of $%(amount)s can't be taken out again: only $%(available)s is "
                "available. The rest is held for published HITs or spent."
            )
            % {"amount": f"{amount_usd:,}", "available": f"{available_usd:,}"}
        )


class NameTaken(MarketplaceError): ...


class InsufficientFunds(MarketplaceError):
    def __init__(self) -> None:
        super().__init__(
            "This Requester has insufficient funds in their account to complete this transaction."
        )


class PaidByRecruiter(MarketplaceError):
    def __init__(self) -> None:
        super().__init__(
            "A recruiter pays for this work. Nothing is held or paid for it from the balance here."
        )


class NotOffered(MarketplaceError): ...


class Missing(MarketplaceError):
    noun = "Object"

    def __init__(self, public_id: str) -> None:
        # Not translated: programs written for Mechanical Turk read this text.
        super().__init__(f"{self.noun} {public_id} does not exist.")


class HitDoesNotExist(Missing):
    noun = "Hit"


class HitTypeDoesNotExist(Missing):
    noun = "HitType"


class AssignmentDoesNotExist(Missing):
    noun = "Assignment"


class HitLayoutDoesNotExist(Missing):
    # Amazon makes layouts on a page that has no counterpart here.
    def __init__(self, public_id: str) -> None:
        Exception.__init__(
            self,
            f"HITLayout {public_id} does not exist: this marketplace keeps no layouts. "
            "Fill in the layout yourself and send it as an HTMLQuestion in Question.",
        )


class QualificationTypeDoesNotExist(Missing):
    noun = "QualificationType"


class QualificationDoesNotExist(Missing):
    def __init__(self) -> None:
        Exception.__init__(self, "You requested a Qualification that does not exist.")


class QualificationRequestDoesNotExist(Missing):
    noun = "QualificationRequest"


class HitAlreadyExists(MarketplaceError):
    # Clients look for the HIT's id in the text.
    def __init__(self, public_id: str) -> None:
        super().__init__(
            f"The HIT with ID {public_id} already exists: "
            "this UniqueRequestToken has been used before."
        )


class DuplicateRequest(MarketplaceError):
    def __init__(self, noun: str, public_id: str) -> None:
        super().__init__(
            f"The {noun} with request ID {public_id} already exists: "
            "this UniqueRequestToken has been used before."
        )


class QualificationTypeAlreadyExists(MarketplaceError):
    def __init__(self) -> None:
        super().__init__("You have already created a QualificationType with this name.")


class InvalidParameter(MarketplaceError, ValueError): ...


class NotificationUndeliverable(MarketplaceError): ...


class InvalidQuestion(MarketplaceError, ValueError): ...


class InvalidHitState(MarketplaceError): ...


class InvalidAssignmentState(MarketplaceError): ...


class InvalidQualificationState(MarketplaceError): ...


class InvalidQualificationTypeState(MarketplaceError): ...


class InvalidQualificationRequestState(MarketplaceError): ...


class InvalidMaximumAssignmentsIncrease(MarketplaceError): ...


class ProtocolError(MarketplaceError):
    """Carries the code an AWS JSON service would answer with."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class WorkRefused(MarketplaceError):
    """Carries the HTTP status of the page that explains it to the worker."""

    status = 409

    def __init__(self, text: str, *, code: str = "", status: int | None = None) -> None:
        super().__init__(text, code=code)
        self.status = status or self.status


class NoAssignmentsLeft(WorkRefused):
    status = 410


class AlreadyWorkedOn(WorkRefused): ...


class AssignmentClosed(WorkRefused):
    status = 410


class NotQualified(WorkRefused):
    status = 403


class RequestRefused(WorkRefused):
    """A qualification that can't be asked for, or not now."""


class DraftChanged(WorkRefused):
    """Saved from another tab or device since this one last looked."""


class ErasureRefused(WorkRefused):
    """Its text says what has to end first."""


class ChannelClosed(WorkRefused):
    status = 410


class ParticipantUnknown(WorkRefused):
    status = 400


class RequesterDoesNotExist(Missing):
    noun = "Requester"


class DepositDoesNotExist(Missing):
    noun = "Deposit"


class AccessKeyDoesNotExist(Missing):
    noun = "Access key"


class ChannelDoesNotExist(Missing):
    noun = "Channel"


class InvalidPayoutFile(MarketplaceError, ValueError): ...


class InvalidStatusFile(MarketplaceError, ValueError): ...


class TooManyKeys(MarketplaceError): ...


class BridgeUnfit(MarketplaceError): ...


class RecruiterBusy(MarketplaceError): ...


def first_or_raise(rows: QuerySet[Any, Row], error: Exception) -> Row:
    row = rows.first()
    if row is None:
        raise error
    return row
