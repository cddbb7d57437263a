"""The scorers that a person names on a command line, with their parameters."""

import json
from collections.abc import Sequence

from annotation.models import Study
from metrics.exceptions import ParameterRefused
from metrics.judge_versions import stored_settings
from metrics.scorers.registry import defaults_of
from metrics.scorers.scorer import Scorer
from metrics.study_judges import Caps, is_judge, judges_client
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
        parameters[metric][parameter] = _stored_value(study, metric, parameter, value) or value
    if judges := [name for name in metrics if is_judge(name)]:
        client = judges_client(caps)
        for name in judges:
            parameters[name]["client"] = client
    return [named_scorer(name, **parameters[name]) for name in metrics]


def _parts(setting: str) -> tuple[str, str, object]:
    name, equals, text = setting.partition("=")
    metric, dot, parameter = name.strip().partition(".")
    if not (metric and dot and parameter and equals):
        message = f"--set {setting}: write it as metric.parameter=value."
        raise ParameterRefused(message, code="setting_unreadable")
    return metric, parameter, _value(metric, parameter, text.strip())


def _stored_value(study: Study | None, metric: str, parameter: str, value: object) -> object:
    """What a study has under that name, if this is where a judge's settings are named."""
    if study is None or parameter != "settings" or not is_judge(metric):
        return None
    return stored_settings(study, metric, str(value))


def _value(metric: str, parameter: str, text: str) -> object:
    """Text where the parameter's default is text; else JSON where it is that, else text."""
    if isinstance(defaults_of(metric).get(parameter), str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
