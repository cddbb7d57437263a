"""What a study's first page shows of each app: what the study is of, figures and panels."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from annotation.pages.stages import Facts, stage_facts, stage_permission
from console.registrations import load_registrations

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy


@dataclass(frozen=True)
class Figure:
    """A label, a value, what it rests on, and the page it is made of."""

    label: str
    value: str
    rests_on: str
    page: str
    url: str = ""


ListFigures = Callable[["CountedStudy", Facts], Iterable[Figure]]
PanelContext = Callable[[HttpRequest, "CountedStudy"], Mapping[str, Any] | None]

_kinds: list[Callable[[Facts], str]] = []
_figures: list[tuple[int, ListFigures]] = []
_panels: list[tuple[str, PanelContext]] = []


def register_study_kind(describe: Callable[[Facts], str]) -> None:
    """Let an app say in words what a study is of; empty for those it knows nothing of."""
    _kinds.append(describe)


def register_figures(place: int, list_figures: ListFigures) -> None:
    """Add figures at a place in their order; they are read, and nothing is computed for them."""
    _figures.append((place, list_figures))


def register_panel(template: str, context: PanelContext) -> None:
    """Add a part below the figures; None as its context leaves it out."""
    _panels.append((template, context))


def study_kind(study: CountedStudy) -> str:
    facts = stage_facts(study)
    described = (describe(facts) for describe in _kinds)
    return next(filter(None, described), study.get_kind_display())


def figures_of(study: CountedStudy, permissions: Container[str]) -> list[Figure]:
    load_registrations()
    facts = stage_facts(study)
    return [
        Figure(
            figure.label,
            figure.value,
            figure.rests_on,
            figure.page,
            reverse(f"console:{figure.page}", args=[study.slug]),
        )
        for _place, list_figures in sorted(_figures, key=lambda each: each[0])
        for figure in list_figures(study, facts)
        if stage_permission(figure.page) in permissions
    ]


def panels_of(request: HttpRequest, study: CountedStudy, may: Mapping[str, bool]) -> list[str]:
    load_registrations()
    contexts = [(template, context(request, study)) for template, context in _panels]
    return [
        render_to_string(template, {"study": study, "may": may, **context}, request)
        for template, context in contexts
        if context is not None
    ]
