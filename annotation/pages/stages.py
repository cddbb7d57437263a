from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy

from accounts.roles import Permission
from annotation.access import loaded_roles, with_roles_of
from annotation.models import Study
from annotation.study_facts import simulation_notice
from console.access import may_of, page_permissions, person, require_permission
from console.chart_values import Axis, Span
from console.registrations import ACTIVE, DONE, LATER, Stage, load_registrations

if TYPE_CHECKING:
    from datetime import datetime

    from annotation.models.studies import CountedStudy


def study_for(
    request: HttpRequest,
    slug: str,
    permission: Permission = Permission.VIEW,
    *,
    has_rehearsals: bool = True,
) -> CountedStudy:
    """The study of that slug: 404 for whoever may not see it, 403 where their role is too small.
    The API has no rehearsals.

    What they may do is on the request from then on, for the page's buttons.
    """
    studies = Study.objects.visible_to(person(request)).select_related("team").with_n_items()
    study = with_roles_of(studies, person(request)).filter(slug=slug).first()
    if study is None:
        rehearsals = Study.objects.rehearsals_for(person(request)).with_n_items()
        rehearsals = rehearsals if has_rehearsals else rehearsals.none()
        study = get_object_or_404(
            rehearsals.select_related("team", "rehearsal_of__team"), slug=slug
        )
    require_permission(request, loaded_roles(study, person(request)), permission)
    if study.rehearsal_of_id is not None:
        _limit_to_reading(request, permission)
    for name, number in _judged_sizes(study.pk, study.created_at, study.judgments_version).items():
        setattr(study, name, number)
    return cast("CountedStudy", study)


# What a role allows in a rehearsal, whose data are made and deleted on the study's Launch page.
OF_REHEARSALS = frozenset(
    {
        *(Permission.VIEW, Permission.VIEW_SYSTEMS, Permission.VIEW_WORKERS),
        *(Permission.ANALYSE, Permission.EXPORT),
    }
)


def _limit_to_reading(request: HttpRequest, permission: Permission) -> None:
    if permission not in OF_REHEARSALS:
        raise PermissionDenied(_("A rehearsal is only read. Change the study itself."))
    request.permissions = page_permissions(request) & OF_REHEARSALS  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def _judged_sizes(key_of_study: int, created_at: datetime, version: int) -> dict[str, int]:
    """The rest of what `counted()` counts, once for each version of the judgments: a million of
    them take a tenth of a second. The process remembers what the cache would be asked on each page.
    """
    key = f"study-sizes:{key_of_study}:{created_at.timestamp()}:{version}"
    sizes: dict[str, int] | None = cache.get(key)
    if sizes is None:
        row = cast("CountedStudy", Study.objects.counted().get(pk=key_of_study))
        sizes = {"n_submissions": row.n_submissions, "n_judgments": row.n_judgments}
        cache.set(key, sizes)
    return sizes


# Pages that show answers, and so say which of these are simulated; others say it themselves.
SHOW_ANSWERS = frozenset(
    {"agreement", "annotators", "disagreement", "adjudication", "labels", "downloads", "paper"}
)


def study_page(
    request: HttpRequest, study: CountedStudy, page: str, context: dict[str, Any] | None = None
) -> HttpResponse:
    """A page of a study with the stages at its left.

    `page` is the name of its stage, after the folder of its template unless that is `console`.
    """
    folder, _slash, stage = page.rpartition("/")
    may = may_of(request)
    beside = {"study": study, "stage": stage, "stages": stages_of(study, may), "may": may}
    if stage in SHOW_ANSWERS and study.n_judgments:
        beside["simulated"] = simulation_notice(study)
    return render(request, f"{folder or 'console'}/{stage}.html", beside | (context or {}))


# What was counted of a study for its stages, by name.
Facts = Mapping[str, Any]
# How a study stands with a stage, and a few words about it.
State = tuple[str, str]

# The parts of a study's life that stages belong to.
PREPARE, COLLECT, ANSWER = (
    gettext_lazy("Prepare"),
    gettext_lazy("Collect"),
    gettext_lazy("Answer"),
)


@dataclass(frozen=True)
class StudyStage:
    """A stage of studies: `name` is its page, `place` its position, `permission` what its page
    needs. `describe` returns None if a study has no such stage."""

    name: str
    title: str | Promise
    group: str | Promise
    place: int
    describe: Callable[[CountedStudy, Facts], State | None]
    permission: Permission = Permission.VIEW


_stages: dict[str, StudyStage] = {}
_counts: list[Callable[[], dict[str, Any]]] = []


def register_stage(stage: StudyStage) -> None:
    _stages[stage.name] = stage


def register_counts(count: Callable[[], dict[str, Any]]) -> None:
    _counts.append(count)


def stage_permission(name: str) -> Permission:
    load_registrations()
    return _stages[name].permission if name in _stages else Permission.VIEW


def stage_facts(study: Study, **also: Any) -> Facts:
    """What is counted of a study for its stages, in one statement; asked once of a loaded study.

    `also` names what else the page asks of the study, in the same statement.
    """
    facts: dict[str, Any] | None = getattr(study, "_stage_facts", None)
    if facts is None or not also.keys() <= facts.keys():
        load_registrations()
        counts = {name: value for count in _counts for name, value in count().items()}
        facts = dict(Study.objects.filter(pk=study.pk).values(**counts | also).get())
        study._stage_facts = facts  # type: ignore[attr-defined]
    return facts


def stages_of(study: CountedStudy, permissions: Container[str]) -> list[Stage]:
    """The stages of a study, which must come from `counted()`, in their order, for somebody who has
    these permissions."""
    facts = stage_facts(study)
    stages = sorted(_stages.values(), key=lambda stage: stage.place)
    if study.rehearsal_of_id is not None:
        stages = [stage for stage in stages if stage.group == ANSWER]
    return [
        Stage(
            stage.name,
            str(stage.title),
            reverse(f"console:{stage.name}", args=[study.slug]),
            *state,
            str(stage.group),
        )
        for stage in stages
        if stage.permission in permissions and (state := stage.describe(study, facts)) is not None
    ]


def result_state(*, is_possible: bool, is_computed: bool) -> State:
    if not is_possible:
        return LATER, ""
    return (DONE, _("computed")) if is_computed else (ACTIVE, _("to be computed"))


@dataclass(frozen=True)
class Figure:
    """A number of a study's Overview with what it rests on. Its page and `permission` decide who
    sees it; `share` is the part of a whole that is there, drawn as a bar."""

    label: str
    value: str
    rests_on: str
    page: str
    url: str = ""
    share: str = ""
    permission: Permission = Permission.VIEW


@dataclass(frozen=True)
class Panel:
    """A part of a study's Overview. Its header leads to `page`.

    `describe` returns what `template` shows: None if the study has no such panel, and an empty
    mapping as long as there is nothing. Then the panel draws its `outline`, and `promise`
    says what will appear. A mapping's `state` may be "few" or "stale" (`since_result`).
    `is_result` says that opening the page requests what is not computed yet.
    """

    name: str
    title: str | Promise
    page: str
    place: int
    template: str
    describe: Callable[[HttpRequest, CountedStudy], Mapping[str, Any] | None]
    promise: str | Promise
    outline: str = "intervals"
    permission: Permission = Permission.VIEW
    is_result: bool = False
    is_of_study: bool = True


@dataclass(frozen=True)
class ShownPanel:
    panel: Panel
    url: str
    view: Mapping[str, Any]

    @property
    def state(self) -> str:
        return str(self.view.get("state", "shown")) if self.view else "empty"

    @property
    def is_awaited(self) -> bool:
        return self.panel.is_result and self.state in ("empty", "stale")


@dataclass(frozen=True)
class Lead:
    """How far the first system of a study is ahead of the second, on an axis around zero."""

    text: str
    axis: Axis
    span: Span | None


ListFigures = Callable[["CountedStudy", Facts], Iterable[Figure]]
FindLeads = Callable[[Iterable[int]], Mapping[int, Lead]]

_kinds: list[Callable[[Facts], str]] = []
_figures: list[tuple[int, ListFigures]] = []
_panels: list[Panel] = []
_leads: list[FindLeads] = []


def register_study_kind(describe: Callable[[Facts], str]) -> None:
    _kinds.append(describe)


def register_figures(place: int, list_figures: ListFigures) -> None:
    _figures.append((place, list_figures))


def register_panel(panel: Panel) -> None:
    _panels.append(panel)


def register_leads(find: FindLeads) -> None:
    _leads.append(find)


def find_leads(studies: Iterable[int]) -> dict[int, Lead]:
    """From stored results, by the key of the study."""
    load_registrations()
    return {key: lead for find in _leads for key, lead in find(studies).items()}


def study_kind(study: CountedStudy) -> str:
    facts = stage_facts(study)
    return next(filter(None, (describe(facts) for describe in _kinds)), study.get_kind_display())


def figures_of(study: CountedStudy, permissions: Container[str]) -> list[Figure]:
    load_registrations()
    facts = stage_facts(study)
    return [
        replace(figure, url=reverse(f"console:{figure.page}", args=[study.slug]))
        for _place, list_figures in sorted(_figures, key=lambda each: each[0])
        for figure in list_figures(study, facts)
        if figure.permission in permissions and stage_permission(figure.page) in permissions
    ]


def panels_of(request: HttpRequest, study: CountedStudy) -> list[ShownPanel]:
    """In their order; the request must have the permissions of this study."""
    load_registrations()
    permissions = page_permissions(request)
    return [
        ShownPanel(
            panel,
            reverse(f"console:{panel.page}", args=[study.slug] if panel.is_of_study else []),
            view,
        )
        for panel in sorted(_panels, key=lambda each: each.place)
        if panel.permission in permissions
        and stage_permission(panel.page) in permissions
        and (view := panel.describe(request, study)) is not None
    ]
