"""The scorers named on a command line, with their parameters, and the models that are here."""

import json
from collections.abc import Sequence
from functools import cache

from django.conf import settings

from annotation.models import Study
from metrics.exceptions import ParameterRefused
from metrics.scorers.checkpoints import locate
from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.interface import Scorer
from metrics.scorers.registry import defaults_of
from metrics.scorers.style import PRESETS
from metrics.study_judges import Caps, is_judge, judges_client, stored_settings
from metrics.study_scores import named_scorer


def chosen_scorers(
    names: Sequence[str],
    settings: Sequence[str] = (),
    *,
    study: Study | None = None,
    caps: Caps = Caps(),  # noqa: B008 -- immutable
) -> list[Scorer]:
    """A scorer for each name, with what `settings` says of it: "metric.parameter=value".

    A judge's settings may be named as the study has them. Judges share one client, so that its
    limits and caps hold for all of them together.
    """
    metrics = list(dict.fromkeys(names))
    parameters: dict[str, dict[str, object]] = {name: {} for name in metrics}
    for setting in settings:
        metric, parameter, value = _parts(setting)
        if metric not in parameters:
            raise ParameterRefused(
                f"--set {setting}: '{metric}' is not one of the requested metrics "
                f"({', '.join(metrics)}).",
                code="unrequested_metric",
            )
        if study is not None and parameter == "settings" and is_judge(metric):
            value = stored_settings(study, metric, str(value)) or value
        parameters[metric][parameter] = value
    if judges := [name for name in metrics if is_judge(name)]:
        client = judges_client(caps)
        for name in judges:
            parameters[name]["client"] = client
    return [named_scorer(name, **parameters[name]) for name in metrics]


def _parts(setting: str) -> tuple[str, str, object]:
    name, equals, text = setting.partition("=")
    metric, dot, parameter = name.strip().partition(".")
    if not (metric and dot and parameter and equals):
        raise ParameterRefused(
            f"--set {setting}: write it as metric.parameter=value.", code="setting_unreadable"
        )
    return metric, parameter, _value(metric, parameter, text.strip())


def _value(metric: str, parameter: str, text: str) -> object:
    if isinstance(defaults_of(metric).get(parameter), str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


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
    return isinstance(error.__cause__, ModelUnavailableError)
