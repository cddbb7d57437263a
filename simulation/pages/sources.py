"""Which judgments an experiment may be made of, and of which teams."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from accounts.models import Team
from accounts.roles import PERMISSIONS, SYSTEM_VIEWERS, Permission
from annotation.relevance import Source, relevance_sources

if TYPE_CHECKING:
    from accounts.models import User

MOST_OFFERED = 300


def teams_that_may_simulate(user: User) -> list[Team]:
    """The teams in which a user may compute, and see which recommender did what."""
    roles = [role for role in SYSTEM_VIEWERS if Permission.ANALYSE in PERMISSIONS[role]]
    rows = Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles)
    return list(rows.order_by("name"))


def sources_of(teams: list[Team]) -> dict[str, Source]:
    """What the teams' studies and collections offer, by key; the newest first."""
    sources = relevance_sources().list_sources(teams)
    return {source.key: source for source in islice(sources, MOST_OFFERED)}


def first_key(sources: dict[str, Source], *, study: str, collection: str) -> str:
    """The judgments that a link meant: the newest of that study or collection."""
    for key, source in sources.items():
        if study and source.study is not None and source.study.slug == study:
            return key
        if collection and source.collection == collection:
            return key
    return next(iter(sources), "")
