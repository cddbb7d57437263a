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
    Annotator,
    ItemSample,
    Judgment,
    MissingAnswer,
    SampledItem,
    Submission,
    WrittenAnswer,
)
from annotation.models.labels import Adjudication, DisputeComment, Label, LabelSet
from annotation.models.members import Invitation, StudyMembership
from annotation.models.studies import (
    Candidate,
    Item,
    Picture,
    Protocol,
    Question,
    SourceCandidate,
    SourceItem,
    Study,
    new_blind_key,
    new_blind_keys,
    new_salt,
)
from annotation.models.uploads import StoredMapping, Upload, UploadPart

__all__ = [
    "Adjudication",
    "Annotator",
    "AnnotatorFlag",
    "Candidate",
    "CheckAnswer",
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
    "Submission",
    "SubmissionEvidence",
    "UnitAgreement",
    "Upload",
    "UploadPart",
    "WrittenAnswer",
    "new_blind_key",
    "new_blind_keys",
    "new_salt",
]
