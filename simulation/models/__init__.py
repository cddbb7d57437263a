"""What is stored of simulations."""

from simulation.models.catalogues import CataloguePart, StoredCatalogue
from simulation.models.dialogue_studies import DialogueStudy, RecordedTurn
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
    "DialoguePiece",
    "DialogueStudy",
    "ExperimentNote",
    "ExperimentVersion",
    "ImprovementRow",
    "RecordedTurn",
    "SeedResult",
    "SensitivityRow",
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
