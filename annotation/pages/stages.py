"""The stages that a study goes through; each app registers those that it has pages for."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.roles import Permission
from annotation.models import Study
from console.registrations import load_registrations
from console.stages import ACTIVE, DONE, LATER, Stage

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy

Facts = Mapping[str, Any]
"""What was counted of a study for its stages, by name."""
State = tuple[str, str]
"""How a study stands with a stage, and a few words about it."""

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
    """Add expressions to the one statement that reads a study for its stages."""
    _counts.append(count)


def stage_permission(name: str) -> Permission:
    """What somebody must be allowed to see the page of that name, stage or not."""
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
    """How a study stands with a result that is computed in the background."""
    if not is_possible:
        return LATER, ""
    return (DONE, _("computed")) if is_computed else (ACTIVE, _("to be computed"))
