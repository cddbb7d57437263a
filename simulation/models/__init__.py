"""What is stored of simulations."""

from simulation.models.catalogues import CataloguePart, StoredCatalogue
from simulation.models.dialogue_studies import (
    DialogueLogPart,
    DialogueStudy,
    FinalItem,
    RecordedTurn,
    SimulatedOutcome,
)
from simulation.models.experiments import (
    DialoguePiece,
    ExperimentVersion,
    SimulatedRecommender,
    SimulatedUser,
    StoredExperiment,
    TargetJudgment,
)
from simulation.models.recommenders import StoredRecommender, TrainingEpoch
from simulation.models.results import (
    CauseRow,
    ComparisonRow,
    ExperimentNote,
    ImprovementRow,
    SeedResult,
    SensitivityRow,
    SwitchCount,
    TargetValue,
    TurnResult,
)

__all__ = [
    "CataloguePart",
    "CauseRow",
    "ComparisonRow",
    "DialogueLogPart",
    "DialoguePiece",
    "DialogueStudy",
    "ExperimentNote",
    "ExperimentVersion",
    "FinalItem",
    "ImprovementRow",
    "RecordedTurn",
    "SeedResult",
    "SensitivityRow",
    "SimulatedOutcome",
    "SimulatedRecommender",
    "SimulatedUser",
    "StoredCatalogue",
    "StoredExperiment",
    "StoredRecommender",
    "SwitchCount",
    "TargetJudgment",
    "TargetValue",
    "TrainingEpoch",
    "TurnResult",
]
