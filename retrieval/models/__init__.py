"""What is stored of test collections."""

from retrieval.models.collections import Collection, CollectionQuerySet, result_collection
from retrieval.models.evaluations import (
    EvaluatedMeasure,
    EvaluationWeights,
    RunPair,
    RunResult,
    TopicValue,
    WeightedResult,
)
from retrieval.models.files import (
    CollectionFile,
    CollectionFileQuerySet,
    FileFit,
    FilePart,
    FileTopic,
    SampleFit,
)
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
from retrieval.models.result_files import ResultFile, ResultRow, ResultType

__all__ = [
    "CandidateSource",
    "Collection",
    "CollectionFile",
    "CollectionFileQuerySet",
    "CollectionQuerySet",
    "DryPoolSource",
    "EvaluatedMeasure",
    "EvaluationWeights",
    "FileFit",
    "FilePart",
    "FileTopic",
    "PoolFinding",
    "PoolReplacement",
    "PoolSlot",
    "PoolStudy",
    "PoolSummary",
    "PooledTopic",
    "ResultFile",
    "ResultRow",
    "ResultType",
    "RunPair",
    "RunResult",
    "SampleFit",
    "SampledTarget",
    "TopicValue",
    "WeightedResult",
    "result_collection",
]
