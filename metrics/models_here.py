"""Which metrics can be computed at this site: those whose model it has."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from metrics.scorers.checkpoints import locate
from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.registry import defaults_of
from metrics.scorers.style import PRESETS


@cache
def has_model(metric: str) -> bool:
    """Whether the metric's model by default is on this server, where it takes one.

    Known once for a process: a model comes with an operator, who starts the site anew.
    """
    defaults = defaults_of(metric)
    if "model" not in defaults or (metric == "embedding" and settings.EMBEDDING_MODEL):
        return True  # a model that the settings name may be fetched
    model = defaults["model"]
    if model is None:
        return False
    try:
        locate(PRESETS.get(str(model), str(model)))
    except ModelUnavailableError:
        return False
    return True


def lacks_model(error: Exception) -> bool:
    """Whether scoring was refused because a model is not on this server."""
    return isinstance(error.__cause__, ModelUnavailableError)
