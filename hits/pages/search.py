"""One search over a study: its items, candidates, systems, annotators and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.models import Annotator, Candidate, Item, Study
from annotation.pages.study import study_for, study_page
from console.access import page_permissions
from console.tables import search_words
from hits.models import Assignment

MOST_FOUND = 20
LEAST_SIGNS = 2


@dataclass(frozen=True)
class Matches:
    """The first rows that match, and whether there are more."""

    rows: Sequence[Any]
    has_more: bool

    @classmethod
    def of(cls, rows: QuerySet[Any]) -> Matches:
        first = list(rows[: MOST_FOUND + 1])
        return cls(first[:MOST_FOUND], len(first) > MOST_FOUND)


@dataclass(frozen=True)
class StudySearch:
    """What a study holds of these words, as far as the role may know; each kind is one query.

    Who may not view systems finds no system, and no key of a candidate, which often is its
    system's name. Who a worker is, only those know who may view workers.
    """

    study: Study
    words: str
    permissions: frozenset[Permission]

    @property
    def sees_systems(self) -> bool:
        return Permission.VIEW_SYSTEMS in self.permissions

    @property
    def sees_workers(self) -> bool:
        return Permission.VIEW_WORKERS in self.permissions

    @property
    def is_long_enough(self) -> bool:
        return len(self.words) >= LEAST_SIGNS

    def items(self) -> Matches:
        """By key, context or reference."""
        contains = [f"{name}__icontains" for name in ("key", "context", "reference")]
        rows = Item.objects.filter(_any(contains, self.words), study=self.study)
        return Matches.of(rows.only("key", "context").order_by("position", "pk"))

    def candidates(self) -> Matches:
        """By text, and by key for those who may know it."""
        names = ("text", "key") if self.sees_systems else ("text",)
        matching = _any([f"{name}__icontains" for name in names], self.words)
        rows = Candidate.objects.filter(matching, item__study=self.study)
        only = ("key", "blind_key", "system", "text", "item__key")
        return Matches.of(rows.select_related("item").only(*only).order_by("pk"))

    def systems(self) -> Matches:
        """By name, with how many candidates each has."""
        rows = Candidate.objects.filter(
            item__study=self.study, system__icontains=self.words
        ).exclude(system="")
        if not self.sees_systems:
            rows = rows.none()
        counts = rows.order_by().values("system").annotate(n=Count("pk")).order_by("system")
        return Matches.of(counts)

    def annotators(self) -> Matches:
        """By pseudonym, with how many submissions each has and the item of the last one."""
        rows = Annotator.objects.filter(study=self.study, pseudonym__icontains=self.words)
        counts = rows.annotate(n=Count("submissions"), last=Max("submissions__item"))
        return Matches.of(counts.order_by("pseudonym"))

    def workers(self) -> Matches:
        """By worker id, with the pseudonym of each in this study."""
        rows = Assignment.objects.filter(
            hit__batch__study=self.study, worker__worker_id__icontains=self.words
        )
        if not self.sees_workers:
            rows = rows.none()
        names = ("worker__worker_id", "submission__annotator__pseudonym")
        counts = rows.order_by().values(*names).annotate(n=Count("pk"), last=Max("hit__item"))
        return Matches.of(counts.order_by(*names))


def _any(lookups: Sequence[str], words: str) -> Q:
    matching = Q()
    for lookup in lookups:
        matching |= Q((lookup, words))
    return matching


@require_safe
def search(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; of systems and workers, as far as the role goes."""
    study = study_for(request, slug)
    matches = StudySearch(study, search_words(request)[:200], page_permissions(request))
    context: dict[str, Any] = {"search": matches}
    if matches.is_long_enough:
        names = ("items", "candidates", "systems", "annotators", "workers")
        context |= {name: getattr(matches, name)() for name in names}
        context["has_any"] = any(context[name].rows for name in names)
    return study_page(request, study, "hits/search", context)
