"""The marketplace's tables, one module per noun."""

from marketplace.models.devices import DevicePrint
from marketplace.models.drafts import AssignmentDraft, ProblemReport
from marketplace.models.hits import (
    Assignment,
    AssignmentQuerySet,
    Hit,
    HitExtension,
    HitQuerySet,
    HitType,
)
from marketplace.models.money import (
    BonusPayment,
    Deposit,
    LedgerAccount,
    LedgerAudit,
    LedgerEntry,
    LedgerTransaction,
    Payout,
    PayoutBatch,
    PayoutMethod,
)
from marketplace.models.notifications import Notification, NotificationSetting, Transport
from marketplace.models.people import (
    AccessKey,
    AuditEntry,
    PaidBy,
    RateBucket,
    Requester,
    WorkerAccount,
    WorkerBlock,
    WorkerMessage,
)
from marketplace.models.qualifications import (
    Qualification,
    QualificationChange,
    QualificationRequest,
    QualificationRequirement,
    QualificationType,
)
from marketplace.models.recruiting import Arrival, Channel, Invitation, PanelWorker
from marketplace.models.reviews import Appeal, ReviewAction, ReviewPolicy, ReviewResult, SubjectType
from marketplace.models.testing import ClockShift, Fault

__all__ = [
    "AccessKey",
    "Appeal",
    "Arrival",
    "Assignment",
    "AssignmentDraft",
    "AssignmentQuerySet",
    "AuditEntry",
    "BonusPayment",
    "Channel",
    "ClockShift",
    "Deposit",
    "DevicePrint",
    "Fault",
    "Hit",
    "HitExtension",
    "HitQuerySet",
    "HitType",
    "Invitation",
    "LedgerAccount",
    "LedgerAudit",
    "LedgerEntry",
    "LedgerTransaction",
    "Notification",
    "NotificationSetting",
    "PaidBy",
    "PanelWorker",
    "Payout",
    "PayoutBatch",
    "PayoutMethod",
    "ProblemReport",
    "Qualification",
    "QualificationChange",
    "QualificationRequest",
    "QualificationRequirement",
    "QualificationType",
    "RateBucket",
    "Requester",
    "ReviewAction",
    "ReviewPolicy",
    "ReviewResult",
    "SubjectType",
    "Transport",
    "WorkerAccount",
    "WorkerBlock",
    "WorkerMessage",
]
