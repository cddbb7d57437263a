"""A requester's own record of what it published: a mirror in Mechanical Turk's nouns.

The marketplace's record is the truth for answers and money; a row lost here can be
collected again. What is to be paid, sent or blocked there is a row here first.
"""

from hits.models.assignments import (
    MOST_PROBLEM,
    Assignment,
    AssignmentRecordQuerySet,
    Worker,
)
from hits.models.batches import (
    SIZE,
    YEAR_SECONDS,
    Batch,
    BatchQuerySet,
    Hit,
    HitRecordQuerySet,
    new_batch_key,
)
from hits.models.connections import Connection
from hits.models.devices import SharedDevice
from hits.models.exclusions import Exclusion, ExclusionQuerySet, WorkerClearance
from hits.models.payments import (
    PART,
    Budget,
    DeliveryState,
    Message,
    Payment,
    WorkerBlock,
    WorkerNote,
)
from hits.models.practice import PracticeAnswer, PracticeHit, PracticeResult
from hits.models.recruiting import Participation, Recruiter, RecruiterCall, Recruitment
from hits.models.reviews import Appeal, DraftDecision, RejectionReason
from hits.models.statements import Statement

__all__ = [
    "MOST_PROBLEM",
    "PART",
    "SIZE",
    "YEAR_SECONDS",
    "Appeal",
    "Assignment",
    "AssignmentRecordQuerySet",
    "Batch",
    "BatchQuerySet",
    "Budget",
    "Connection",
    "DeliveryState",
    "DraftDecision",
    "Exclusion",
    "ExclusionQuerySet",
    "Hit",
    "HitRecordQuerySet",
    "Message",
    "Participation",
    "Payment",
    "PracticeAnswer",
    "PracticeHit",
    "PracticeResult",
    "Recruiter",
    "RecruiterCall",
    "Recruitment",
    "RejectionReason",
    "SharedDevice",
    "Statement",
    "Worker",
    "WorkerBlock",
    "WorkerClearance",
    "WorkerNote",
    "new_batch_key",
]
