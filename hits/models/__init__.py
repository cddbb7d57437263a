"""A requester's own record of what it published: a mirror in Mechanical Turk's nouns.

The marketplace's record is the truth for answers and money; a row lost here can be
collected again. What is to be paid, sent or blocked there is a row here first.
"""

from hits.models.batches import (
    MOST_PROBLEM,
    SIZE,
    YEAR_SECONDS,
    Assignment,
    AssignmentRecordQuerySet,
    Batch,
    BatchQuerySet,
    Hit,
    HitRecordQuerySet,
    Worker,
    new_batch_key,
)
from hits.models.previews import PreviewLink
from hits.models.recruiting import (
    Connection,
    InvitedPerson,
    LinkStudy,
    Participation,
    Recruiter,
    RecruiterCall,
    Recruitment,
)
from hits.models.reviews import (
    PART,
    Appeal,
    Budget,
    DeliveryState,
    DraftDecision,
    Inquiry,
    Message,
    Payment,
    RejectionReason,
    Statement,
    WorkerBlock,
    WorkerNote,
)
from hits.models.workers import (
    Exclusion,
    ExclusionQuerySet,
    PracticeAnswer,
    PracticeHit,
    PracticeResult,
    SharedDevice,
    WorkerClearance,
)

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
    "Inquiry",
    "InvitedPerson",
    "LinkStudy",
    "Message",
    "Participation",
    "Payment",
    "PracticeAnswer",
    "PracticeHit",
    "PracticeResult",
    "PreviewLink",
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
