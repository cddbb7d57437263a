"""What is stored of test collections."""

from retrieval.models.audits import AuditClaim, AuditedFile, AuditFact, AuditFinding
from retrieval.models.collections import Collection, CollectionQuerySet
from retrieval.models.comparisons import (
    AnyTwoAssessors,
    AssessorDesign,
    ChangedPair,
    ComparedQrels,
    CrossedRunMean,
    LabelPair,
    RankedRun,
    RankingCoefficient,
    RankingPair,
)
from retrieval.models.evaluations import EvaluatedMeasure, RunPair, RunResult, TopicValue
from retrieval.models.files import (
    CollectionFile,
    CollectionFileQuerySet,
    FileFit,
    FilePart,
    FileTopic,
)
from retrieval.models.machines import MachineEstimate, MachineFacts, ModelBias
from retrieval.models.pools import (
    CandidateSource,
    DryPoolSource,
    PooledTopic,
    PoolFinding,
    PoolReplacement,
    PoolSlot,
    PoolStudy,
    PoolSummary,
    SampledTarget,
)
from retrieval.models.reports import ReportSentence
from retrieval.models.reuse import (
    JudgedPool,
    LeftOutEffect,
    LeftOutUnit,
    PooledRun,
    PoolRank,
    PoolSource,
    ReuseExpectation,
)
from retrieval.models.versions import (
    CollectionVersion,
    CollectionVersionQuerySet,
    OfVersion,
    VersionFile,
    VersionNote,
)

__all__ = [
    "AnyTwoAssessors",
    "AssessorDesign",
    "AuditClaim",
    "AuditFact",
    "AuditFinding",
    "AuditedFile",
    "CandidateSource",
    "ChangedPair",
    "Collection",
    "CollectionFile",
    "CollectionFileQuerySet",
    "CollectionQuerySet",
    "CollectionVersion",
    "CollectionVersionQuerySet",
    "ComparedQrels",
    "CrossedRunMean",
    "DryPoolSource",
    "EvaluatedMeasure",
    "FileFit",
    "FilePart",
    "FileTopic",
    "JudgedPool",
    "LabelPair",
    "LeftOutEffect",
    "LeftOutUnit",
    "MachineEstimate",
    "MachineFacts",
    "ModelBias",
    "OfVersion",
    "PoolFinding",
    "PoolRank",
    "PoolReplacement",
    "PoolSlot",
    "PoolSource",
    "PoolStudy",
    "PoolSummary",
    "PooledRun",
    "PooledTopic",
    "RankedRun",
    "RankingCoefficient",
    "RankingPair",
    "ReportSentence",
    "ReuseExpectation",
    "RunPair",
    "RunResult",
    "SampledTarget",
    "TopicValue",
    "VersionFile",
    "VersionNote",
]
