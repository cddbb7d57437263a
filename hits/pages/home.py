"""How each of a person's studies stands, and what waits for them over all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.roles import Permission
from annotation.access import loaded_permissions
from annotation.models import Study
from console.registrations import DONE, LATER, NEEDS_YOU, SIGNS
from hits.budgets import Room, rooms_by_study
from hits.costs import paid_by_recruiters, spend_by_batch
from hits.pages.urgent import HomeDecision, Material, waiting_decisions
from hits.progress import BatchStanding, batch_standings

MOST_DECISIONS = 20
MOST_TEAM_BUDGETS = 3


@dataclass(frozen=True)
class StudyRow:
    """A study in the list: its stage in a word, what is collected, what was spent."""

    study: Study
    state: str
    stage: str
    n_collected: int
    n_offered: int
    spent_usd: Decimal | None
    # What recruiters paid participants, by currency.
    paid_there: Mapping[str, Decimal]

    @property
    def sign(self) -> str:
        return SIGNS[self.state]


class Home:
    """A person's studies: what waits for a decision in any, and how each on the page stands.

    The studies come from `with_roles_of`.
    """

    def __init__(self, user: User, studies: Sequence[Study]) -> None:
        self.studies = {study.pk: study for study in studies}
        self.permissions = {study.pk: loaded_permissions(study, user) for study in studies}
        self.standings = batch_standings(studies)

    @cached_property
    def rooms(self) -> list[Room]:
        """The budgets of these studies and of their teams, of those whose money may be seen."""
        studies = [
            study
            for study in self.studies.values()
            if Permission.VIEW_MONEY in self.permissions[study.pk] and study.archived_at is None
        ]
        return rooms_by_study(studies)

    @property
    def team_rooms(self) -> list[Room]:
        return [room for room in self.rooms if room.scope == "team"][:MOST_TEAM_BUDGETS]

    def decisions(self) -> list[HomeDecision]:
        """What waits for this person's decision, most pressing first."""
        current = {key: each for key, each in self.studies.items() if each.archived_at is None}
        material = Material(current, self.permissions, self.standings, self.rooms)
        rows = waiting_decisions(material)
        return sorted(rows, key=lambda one: one.order)[:MOST_DECISIONS]

    def rows(self, studies: Sequence[Study]) -> list[StudyRow]:
        """Those of the studies, which must come from `counted()`, as rows of the list."""
        of_study: dict[int, list[BatchStanding]] = defaultdict(list)
        for standing in self.standings:
            of_study[standing.batch.study_id].append(standing)
        spends = spend_by_batch([one.batch for one in self.standings])
        has_money = {key for key, may in self.permissions.items() if Permission.VIEW_MONEY in may}
        recruited = {one.batch.study_id for one in self.standings if one.batch.is_recruited}
        paying = {study.pk for study in studies} & has_money & recruited
        paid_there = paid_by_recruiters(paying) if paying else {}
        rows = []
        for study in studies:
            standings = of_study[study.pk]
            spent = [spends[one.batch.pk].total_usd for one in standings]
            n_offered = sum(one.n_offered for one in standings)
            n_collected = sum(one.n_collected for one in standings)
            state, stage = _stage(study, standings, is_complete=n_collected >= n_offered)
            row = StudyRow(
                *(study, state, stage, n_collected, n_offered),
                spent_usd=sum(spent, Decimal(0)) if spent and study.pk in has_money else None,
                paid_there=paid_there.get(study.pk, {}),
            )
            rows.append(row)
        return rows


def _stage(study: Study, standings: list[BatchStanding], *, is_complete: bool) -> tuple[str, str]:
    if study.archived_at is not None:
        return LATER, _("Archived")
    if not standings:
        has_items, has_judgments = getattr(study, "n_items", 0), getattr(study, "n_judgments", 0)
        if has_judgments:
            return DONE, _("Imported")
        return (LATER, _("Launch")) if has_items else (LATER, _("Items"))
    if any(one.n_undecided or one.n_unreadable for one in standings):
        return NEEDS_YOU, _("Review")
    if is_complete:
        return DONE, _("Done")
    is_over = all(
        one.batch.closed_at or one.batch.offered_until <= timezone.now() for one in standings
    )
    return (NEEDS_YOU, _("Incomplete")) if is_over else ("active", _("Collecting"))
