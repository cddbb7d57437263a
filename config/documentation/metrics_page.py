"""The metrics' reference, of their registry: what each needs, its licence and size."""

from __future__ import annotations

from collections.abc import Iterator

from config.documentation.schema_tables import cell, table
from metrics.scorers.registry import Description, available

PATH = "reference/metrics.md"
INTRODUCTION = """# Metrics, their licences and sizes

Made of the registry in `metrics/scorers/registry.py`, as `python manage.py metrics` lists it.
[The metrics](../metrics.md) says what each computes, and [judges](../judges.md) how language
models are asked. A model that is not installed is fetched only where `download=True` says so, or
read from a folder; its licence is for you to keep.

"""


def metrics_page() -> str:
    metrics = available()
    rows = [
        [f"[`{m.name}`](#{m.name.lower()})", cell(m.summary), cell(m.licence), m.size or "none"]
        for m in metrics
    ]
    overview = table(["name", "what it is", "licence", "model on disk"], rows)
    return "\n".join([INTRODUCTION + overview, *(line for m in metrics for line in _section(m))])


def _section(metric: Description) -> Iterator[str]:
    yield f"## {metric.name}\n"
    yield f"{metric.summary}.\n"
    lower = ", ".join(f"`{name}`" for name in metric.outputs if name in metric.lower_is_better)
    needs = ", ".join(sorted(metric.needs)) or "the response only"
    yield f"- gives {', '.join(f'`{name}`' for name in metric.outputs)}"
    yield f"- lower is better of {lower or 'none'}"
    yield f"- needs {needs}"
    if metric.requires:
        yield f"- takes {metric.requires}"
    yield f"- licence: {metric.licence}"
    yield f"- parameters: {', '.join(_parameters(metric)) or 'none'}\n"


def _parameters(metric: Description) -> Iterator[str]:
    for name, default in metric.parameters.items():
        yield f"`{name}={default}`" if default is not None else f"`{name}`"
