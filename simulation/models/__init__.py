from simulation.models.catalogue import (
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
    StoredExperiment,
    TargetJudgment,
)

__all__ = [
    "CataloguePart",
    "DialogueLogPart",
    "DialoguePiece",
    "DialogueStudy",
    "FinalItem",
    "RecordedTurn",
    "SimulatedOutcome",
    "StoredCatalogue",
    "StoredExperiment",
    "StoredRecommender",
    "TargetJudgment",
    "TrainingEpoch",
]
