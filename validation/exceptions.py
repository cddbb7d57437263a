"""What can be wrong with a validation that someone asks for.

metrics.MetricsError
├── ClustersUnfit: clusters that a study's items do not come in
├── LabelsUnfit: label sets that cannot be the human values
└── PrimaryUnknown: the family of tests names a metric without scores
"""

from collections.abc import Sequence

from metrics.exceptions import MetricsError


class ClustersUnfit(MetricsError):
    """Clusters that a study's items do not come in."""


class LabelsUnfit(MetricsError):
    """Label sets that cannot be the human values: of one question twice, or of another round."""


class PrimaryUnknown(MetricsError):
    """The family of tests names metrics that the study has no scores of."""

    def __init__(self, unknown: Sequence[str], known: Sequence[str]) -> None:
        self.unknown, self.known = list(unknown), list(known)
        super().__init__(
            f"The study has no scores of {', '.join(unknown)}; the family of tests can name the "
            f"metrics with scores: {', '.join(known)}."
        )
