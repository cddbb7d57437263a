"""What can go wrong in simulations.

SimulationError
├── CatalogueUnfit     files of a catalogue cannot be used, or do not fit each other
├── TargetsUnfit       judgments or first items that cannot be used with a catalogue
├── CaptionsUnfit      a file of relative captions cannot be used
├── CheckpointUnfit    a trained recommender cannot be read, or is of another catalogue
├── DialoguesUnfit     recorded dialogues that a study cannot be made of
└── ExperimentUnfit    settings of an experiment that cannot be used, or an input that has gone
"""

from error_codes import CorrectableError


class SimulationError(CorrectableError):
    pass


class CatalogueUnfit(SimulationError):
    pass


class TargetsUnfit(SimulationError):
    pass


class CaptionsUnfit(SimulationError):
    pass


class CheckpointUnfit(SimulationError):
    pass


class DialoguesUnfit(SimulationError):
    pass


class ExperimentUnfit(SimulationError):
    pass
