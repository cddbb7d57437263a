"""What a reader makes of a file, before anything touches a database.

What a file has a million of is not frozen: that would take three times as long to make.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from annotation.readers.report import ReadingReport

# Of items whose drafts hold pictures of up to 2 MiB each, fewer are in memory at once.
DRAFTS_WITH_PICTURES_AT_ONCE = 20


@dataclass(frozen=True)
class PictureDraft:
    media_type: str
    content: bytes


@dataclass(slots=True)
class CandidateDraft:
    key: str
    system: str = ""
    text: str = ""
    picture: PictureDraft | None = None


@dataclass(slots=True)
class ItemDraft:
    key: str
    candidates: tuple[CandidateDraft, ...]
    line: int
    context: str = ""
    reference: str = ""
    condition: str = ""
    picture: PictureDraft | None = None


@dataclass(frozen=True)
class QuestionDraft:
    name: str
    wording: str
    level: str = "interval"
    scale_min: float = 0.0
    scale_max: float = 100.0
    low_label: str = ""
    high_label: str = ""
    categories: tuple[str, ...] = ()
    kind: str = "line"


@dataclass(frozen=True)
class WrittenDraft:
    question: str
    text: str
    candidate: str = ""


@dataclass(slots=True)
class JudgmentDraft:
    """`field` is what the file calls the value."""

    candidate: str
    question: str
    value: float
    line: int | None = None
    field: str = "value"


@dataclass(slots=True)
class SubmissionDraft:
    """`annotator` is a name that may be shown; `identity` one that must not be.

    `path` is the file it stands in, where that is another than the items'.
    """

    item: str
    judgments: tuple[JudgmentDraft, ...]
    raw: str
    line: int
    annotator: str = ""
    identity: str = ""
    round: int = 1
    status: str = "submitted"
    justification: str = ""
    accepted_at: datetime | None = None
    submitted_at: datetime | None = None
    seconds: float | None = None
    path: Path | None = None
    written: tuple[WrittenDraft, ...] = ()
    is_simulated: bool = False


@dataclass(frozen=True)
class StudyDraft:
    """A file's content; `report` says what of it is used.

    Items that are only named belong to a study that has them, or make a new one. Items and
    submissions may be made as they are gone through, and are gone through more than once.
    """

    kind: str
    items: Collection[ItemDraft]
    questions: tuple[QuestionDraft, ...] = ()
    submissions: Collection[SubmissionDraft] = ()
    items_only_named: bool = False
    drafts_at_once: int | None = None
    report: ReadingReport = field(default_factory=ReadingReport)
