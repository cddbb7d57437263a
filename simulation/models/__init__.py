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
    DialoguePiece,
    ExperimentVersion,
    SeedResult,
    SensitivityRow,
    SimulatedRecommender,
    SimulatedUser,
    StoredExperiment,
    TargetJudgment,
    TargetValue,
    TurnResult,
)

__all__ = [
    "CataloguePart",
    "DialogueLogPart",
    "DialoguePiece",
    "DialogueStudy",
    "ExperimentVersion",
    "FinalItem",
    "RecordedTurn",
    "SeedResult",
    "SensitivityRow",
    "SimulatedOutcome",
    "SimulatedRecommender",
    "SimulatedUser",
    "StoredCatalogue",
    "StoredExperiment",
    "StoredRecommender",
    "TargetJudgment",
    "TargetValue",
    "TrainingEpoch",
    "TurnResult",
]
