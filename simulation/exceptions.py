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
    """Something a person can mend; its text says what and how."""


class CatalogueUnfit(SimulationError):
    """Files of a catalogue cannot be used, or do not fit each other."""


class TargetsUnfit(SimulationError):
    """Judgments or first items that cannot be used with a catalogue."""


class CaptionsUnfit(SimulationError):
    """A file of relative captions cannot be used."""


class CheckpointUnfit(SimulationError):
    """A trained recommender cannot be read, or is of another catalogue."""


class DialoguesUnfit(SimulationError):
    """Recorded dialogues that a study cannot be made of, or a study that is of none."""


class ExperimentUnfit(SimulationError):
    """Settings of an experiment cannot be used, or an input of it has gone."""
