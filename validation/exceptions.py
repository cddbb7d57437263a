"""What can be wrong with a validation that someone asks for.

metrics.MetricsError
└── LabelsUnfit: label sets that cannot be the human values together
"""

from metrics.exceptions import MetricsError


class LabelsUnfit(MetricsError):
    """Label sets that cannot be the human values together."""
