"""What is stored of simulations."""

from simulation.models.catalogues import (
    CataloguePart,
    StoredCatalogue,
    StoredRecommender,
    TrainingEpoch,
)
from simulation.models.dialogue_studies import (
    DialogueLogPart,
    DialogueStudy,
    FinalItem,
    RecordedTurn,
    SimulatedOutcome,
)
from simulation.models.experiments import (
    CauseRow,
    ComparisonRow,
    DialoguePiece,
    ExperimentNote,
    ExperimentVersion,
    ImprovementRow,
    SeedResult,
    SensitivityRow,
    SimulatedRecommender,
    SimulatedUser,
    StoredExperiment,
    SwitchCount,
    TargetJudgment,
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
