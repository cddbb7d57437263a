"""Validations of a study's metrics: typed rows under a version that never changes.

The rows have the fields of the records in `validation.analysis.records`; an undefined number is
NULL, with its reason. `validation.rows` turns the one into the other.
"""

from validation.models.human_results import (
    HumanResults,
    HumanResultsBin,
    HumanResultsPair,
    HumanResultsQuestion,
    HumanResultsSystem,
    LowestRated,
)
from validation.models.inputs import LabelSource, ScoreSet
from validation.models.measures import Ceiling, Comparison, Correlation, Plan, Sensitivity
from validation.models.outcomes import ValidationOutcome
from validation.models.scatters import Scatter, ScatterPoint
from validation.models.systems import (
    Disagreement,
    EstimatedDifference,
    EstimatedMean,
    RatedPair,
    RatedSystem,
    SystemRow,
    SystemScore,
    WorstCandidate,
)
from validation.models.versions import OfMeasure, OfPanel, OfVersion, ReportFile, ValidationVersion

__all__ = [
    "Ceiling",
    "Comparison",
    "Correlation",
    "Disagreement",
    "EstimatedDifference",
    "EstimatedMean",
    "HumanResults",
    "HumanResultsBin",
    "HumanResultsPair",
    "HumanResultsQuestion",
    "HumanResultsSystem",
    "LabelSource",
    "LowestRated",
    "OfMeasure",
    "OfPanel",
    "OfVersion",
    "Plan",
    "RatedPair",
    "RatedSystem",
    "ReportFile",
    "Scatter",
    "ScatterPoint",
    "ScoreSet",
    "Sensitivity",
    "SystemRow",
    "SystemScore",
    "ValidationOutcome",
    "ValidationVersion",
    "WorstCandidate",
]
