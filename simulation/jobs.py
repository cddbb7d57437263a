from django.utils.translation import gettext_lazy

from annotation.exceptions import AnnotationError
from metrics.scorers.errors import ScorerError
from simulation.exceptions import SimulationError
from simulation.recorded_studies import MAKE_DIALOGUES, make_dialogues
from simulation.run_pieces import (
    EVALUATE_RUN,
    RUN_PIECE,
    evaluate_run,
    run_experiment_version,
    run_piece,
)
from simulation.stored_catalogues import TRAIN, train_recommender
from simulation.stored_experiments import RUN_EXPERIMENT
from work.registry import SCORING, register

for name, label, handler in (
    (RUN_EXPERIMENT, gettext_lazy("Running an experiment"), run_experiment_version),
    (RUN_PIECE, gettext_lazy("Simulating dialogues"), run_piece),
    (EVALUATE_RUN, gettext_lazy("Evaluating dialogues"), evaluate_run),
    (MAKE_DIALOGUES, gettext_lazy("Making items of dialogues"), make_dialogues),
    (TRAIN, gettext_lazy("Training a recommender"), train_recommender),
):
    register(
        name, label=label, queue=SCORING, refusals=(SimulationError, AnnotationError, ScorerError)
    )(handler)
