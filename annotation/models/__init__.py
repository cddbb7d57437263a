"""Studies and the judgments in them.

A study asks questions about candidates. Candidates are grouped in items: an item is
what one annotator sees on one page. One annotator's finished pass over one item in one
round is a submission, which holds one judgment per candidate and question. A label set
holds one label per candidate, made of the judgments by a rule.
"""

from annotation.models.agreement import UnitAgreement
from annotation.models.evidence import (
    AnnotatorFlag,
    CheckAnswer,
    PlacedCheck,
    SubmissionEvidence,
)
from annotation.models.judgments import (
    PLAUSIBLY_TIMED,
    ROUNDING_SECONDS,
    Annotator,
    ItemSample,
    Judgment,
    MissingAnswer,
    SampledItem,
    Submission,
    SubmissionQuerySet,
    WrittenAnswer,
)
from annotation.models.labels import LONGEST_COMMENT, Adjudication, DisputeComment, Label, LabelSet
from annotation.models.members import Invitation, StudyMembership
from annotation.models.studies import (
    BLIND_KEY_LENGTH,
    Candidate,
    CountedStudy,
    Item,
    Picture,
    Protocol,
    Question,
    SourceCandidate,
    SourceItem,
    Study,
    StudyQuerySet,
    StudyRowQuerySet,
    counted,
    first_that_says_nothing,
    new_blind_key,
    new_blind_keys,
    new_salt,
    says_nothing,
)
from annotation.models.uploads import OF_POOLS, StoredMapping, Upload, UploadPart

__all__ = [
    "BLIND_KEY_LENGTH",
    "LONGEST_COMMENT",
    "OF_POOLS",
    "PLAUSIBLY_TIMED",
    "ROUNDING_SECONDS",
    "Adjudication",
    "Annotator",
    "AnnotatorFlag",
    "Candidate",
    "CheckAnswer",
    "CountedStudy",
    "DisputeComment",
    "Invitation",
    "Item",
    "ItemSample",
    "Judgment",
    "Label",
    "LabelSet",
    "MissingAnswer",
    "Picture",
    "PlacedCheck",
    "Protocol",
    "Question",
    "SampledItem",
    "SourceCandidate",
    "SourceItem",
    "StoredMapping",
    "Study",
    "StudyMembership",
    "StudyQuerySet",
    "StudyRowQuerySet",
    "Submission",
    "SubmissionEvidence",
    "SubmissionQuerySet",
    "UnitAgreement",
    "Upload",
    "UploadPart",
    "WrittenAnswer",
    "counted",
    "first_that_says_nothing",
    "new_blind_key",
    "new_blind_keys",
    "new_salt",
    "says_nothing",
]
