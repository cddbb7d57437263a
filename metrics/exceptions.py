"""What can go wrong in metrics.

MetricsError
├── MetricUnknown      there is no scorer of that name
├── ParameterRefused   a metric has no such parameter, or the value does not fit
├── ModelUnfit         a metric's model is missing or was changed
├── NothingToScore     the study has no candidates
├── RunBusy            another process is scoring just that
├── RunTaken           the run was stopped, or another process took it over
├── NotPaired          there are no pairs to compare
├── ColumnsUnfit       the columns named do not fit together
├── NothingToValidate  judgments or scores are missing
├── ValidationUnknown  a study has no report of that version
└── ReportUnwritten    a report's files cannot be written there

annotation.exceptions.FileRefused
└── FileUnfit          a file to score, or of scores, cannot be used
"""

from annotation.exceptions import FileRefused
from error_codes import CodedError, CorrectableError


class MetricsError(CorrectableError):
    """Something a person can mend; its text says what and how."""


def get_code(error: Exception) -> str:
    """The code that the error was raised with, or "" if it has none of its own."""
    return error.code if isinstance(error, CodedError) and error.code != error.kind else ""


class MetricUnknown(MetricsError):
    """There is no scorer of that name."""


class ParameterRefused(MetricsError):
    """A metric has no such parameter, or the value does not fit."""


class ModelUnfit(MetricsError):
    """A metric's model is missing or was changed."""


class NothingToScore(MetricsError):
    """The study has no candidates."""


class NotScored(MetricsError):
    """None of the metrics that were asked for could be computed."""


class RunBusy(MetricsError):
    """Another process is scoring just that."""


class RunTaken(MetricsError):
    """The run was stopped, or another process took it over."""


class NotPaired(MetricsError):
    """There are no pairs to compare."""


class FileUnfit(FileRefused):
    advice = " Nothing was scored."


class ColumnsUnfit(MetricsError):
    """The columns named do not fit together."""


class NothingToValidate(MetricsError):
    """Judgments or scores are missing."""


class ValidationUnknown(MetricsError):
    def __init__(self, version: int, known: list[int]) -> None:
        versions = ", ".join(map(str, known)) or "none yet"
        super().__init__(f"There is no validation report {version}; there are: {versions}.")


class ReportUnwritten(MetricsError):
    """A report's files cannot be written there."""
