"""How many places at a recruiter the judgments need that are still wanted; more are refused, since
whoever came on one would find nothing to do, and be sent back unpaid."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Count, F, IntegerField, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _, ngettext

from marketplace import clock
from marketplace.exceptions import InvalidParameter, WorkRefused, require
from marketplace.hits.assignments import create_assignment
from marketplace.models import (
    Assignment,
    ErasedSubmission,
    Hit,
    HitQuerySet,
    HitType,
    RecruitedStudy,
    Session,
    SessionItem,
)

# The HITs that a participant is given at arrival: as many as the study says, or all that are
# left where those are fewer, so that whoever comes on the last place that was paid for has work.
#
# Those are chosen that fewest have been promised, and none that the participant has done before.
# Locks of other arrivals are passed over at first. Where too few are left over then, the next try
# waits for them, in the order of their ids, and looks anew; so nobody is sent away while a HIT
# might still be had, and nobody holds one HIT while waiting for another.


class Contended(Exception):
    """Another transaction, which ends soon, holds the HITs."""


def reserve_items(session: Session, *, now: datetime, waits: bool, takes_fewer: bool) -> bool:
    """Create the session's assignments, in the caller's transaction. False if no HIT is left, or
    fewer than the study says and `takes_fewer` is not set."""
    wanted = session.study.items_per_session
    hits = _candidates(session, now)
    rows = _waited_for(hits, wanted) if waits else list(hits.not_locked_by_others()[:wanted])
    if len(rows) < wanted:
        n_left = hits.count()
        if n_left < (1 if takes_fewer else wanted):
            return False
        if len(rows) < min(wanted, n_left):
            raise Contended
    for position, hit in enumerate(rows, start=1):
        hit.hit_type = session.study.hit_type
        try:
            assignment = create_assignment(
                hit, session.worker, is_qualified=True, deadline=session.expires_at
            )
        except WorkRefused as error:
            raise Contended from error
        SessionItem.objects.create(session=session, assignment=assignment, position=position)
    return True


def hits_of(study: RecruitedStudy) -> HitQuerySet:
    hits = Hit.objects.in_group(study.hit_type)
    prefix = study.annotation_prefix
    return hits.filter(requester_annotation__startswith=prefix) if prefix else hits


def _candidates(session: Session, now: datetime) -> HitQuerySet:
    live = Assignment.objects.live().filter(hit=OuterRef("pk")).order_by().values("hit")
    count = Subquery(live.annotate(n=Count("pk")).values("n"), output_field=IntegerField())
    workable = hits_of(session.study).workable_by(session.worker, now)
    return workable.annotate(promised=Coalesce(count, 0)).order_by("promised", "pk")


def _waited_for(hits: HitQuerySet, wanted: int) -> list[Hit]:
    keys = list(hits.values_list("pk", flat=True)[:wanted])
    return list(Hit.objects.filter(pk__in=keys).order_by("pk").locked())


def judgments_wanted(hit_type: HitType, annotation_prefix: str = "") -> list[int]:
    study = RecruitedStudy(hit_type=hit_type, annotation_prefix=annotation_prefix)
    return Demand([study]).judgments_of(study)


def places_for(hit_type: HitType, items_per_session: int, annotation_prefix: str = "") -> int:
    """Places for the judgments that nobody gives and no open study of the HITs covers."""
    study = RecruitedStudy(
        hit_type=hit_type, items_per_session=items_per_session, annotation_prefix=annotation_prefix
    )
    _n_elsewhere, n_needed = Demand([study]).beside_others(study)
    return n_needed


def places_needed(n_judgments: int, most_of_a_hit: int, items_per_session: int) -> int:
    """Places for these judgments: at least as many as one HIT wants, since a participant judges it
    once."""
    return max(math.ceil(n_judgments / items_per_session), most_of_a_hit)


def require_work(study: RecruitedStudy, n_more: int, *, n_present: int = 0) -> None:
    """Refuse `n_more` places if the judgments need fewer."""
    demand = Demand([study])
    wanted = demand.judgments_of(study)
    require(
        wanted,
        InvalidParameter(
            _(
                "No judgment is left to give: the HITs are done, promised to participants at work, "
                "or expired. No place is needed; whoever came would find nothing to do."
            ),
            code="no_judgment_left",
        ),
    )
    n_elsewhere, n_needed = demand.beside_others(study)
    n_free = max(0, n_present - demand.n_taken(study)) if n_present else 0
    if n_more > max(0, n_needed - n_free):
        n_in_all = places_needed(sum(wanted), max(wanted), study.items_per_session)
        raise InvalidParameter(
            _too_many(sum(wanted), n_in_all, n_free, n_elsewhere), code="too_many_places"
        )


def free_and_needed(study: RecruitedStudy) -> tuple[int, int]:
    """The study's free places, and the places needed for judgments that no participant and no
    other study covers."""
    return free_and_needed_of([study])[study.pk]


def free_and_needed_of(studies: Sequence[RecruitedStudy]) -> dict[int, tuple[int, int]]:
    demand = Demand(studies)
    return {one.pk: (demand.n_free(one), demand.beside_others(one)[1]) for one in studies}


class Demand:
    """What the HITs of some studies still want and which places are taken, in a fixed number of
    queries."""

    def __init__(self, studies: Sequence[RecruitedStudy]) -> None:
        open_ones = RecruitedStudy.objects.filter(
            hit_type__in={one.hit_type_id for one in studies}, state=RecruitedStudy.State.ACTIVE
        )
        self._open = list(open_ones) if studies else []
        self._hits = _open_hits(studies) if studies else []
        every = {one.pk: one for one in [*self._open, *studies] if one.pk is not None}
        self._n_taken = _places_taken(every.values())

    def judgments_of(self, study: RecruitedStudy) -> list[int]:
        return [
            n
            for hit_type, annotation, n in self._hits
            if hit_type == study.hit_type_id and annotation.startswith(study.annotation_prefix)
        ]

    def n_taken(self, study: RecruitedStudy) -> int:
        return self._n_taken.get(study.pk, 0)

    def n_free(self, study: RecruitedStudy) -> int:
        return max(0, study.places - self.n_taken(study))

    def beside_others(self, study: RecruitedStudy) -> tuple[int, int]:
        """Free places of other open studies of the same HITs, and this study's places for the
        judgments that those leave."""
        wanted = self.judgments_of(study)
        n_elsewhere = n_given = 0
        for other in self._others_open(study):
            free = self.n_free(other)
            is_part = len(other.annotation_prefix) > len(study.annotation_prefix)
            theirs = self.judgments_of(other) if is_part else wanted
            n_elsewhere += free
            n_given += min(free * other.items_per_session, sum(theirs))
        return n_elsewhere, places_needed(
            max(0, sum(wanted) - n_given),
            max(0, max(wanted, default=0) - n_elsewhere),
            study.items_per_session,
        )

    def _others_open(self, study: RecruitedStudy) -> list[RecruitedStudy]:
        # Only those whose free places are for the same judgments.
        mine = study.annotation_prefix
        return [
            one
            for one in self._open
            if one.hit_type_id == study.hit_type_id
            and one.pk != study.pk
            and (one.annotation_prefix.startswith(mine) or mine.startswith(one.annotation_prefix))
        ]


def _too_many(n_judgments: int, n_needed: int, n_free: int, n_elsewhere: int) -> str:
    text = ngettext(
        "%(n)s judgment is left to give, which needs %(places)s; whoever came on another would "
        "find nothing to do.",
        "%(n)s judgments are left to give, which need %(places)s; whoever came on another would "
        "find nothing to do.",
        n_judgments,
    ) % {
        "n": f"{n_judgments:,}",
        "places": ngettext("%(n)s place", "%(n)s places", n_needed) % {"n": f"{n_needed:,}"},
    }
    free = ngettext(
        "%(n)s place of the study is free already.",
        "%(n)s places of the study are free already.",
        n_free,
    ) % {"n": f"{n_free:,}"}
    elsewhere = ngettext(
        "%(n)s free place of another study of these HITs is for them.",
        "%(n)s free places of other studies of these HITs are for them.",
        n_elsewhere,
    ) % {"n": f"{n_elsewhere:,}"}
    return " ".join([text, *([free] if n_free else []), *([elsewhere] if n_elsewhere else [])])


def _open_hits(studies: Sequence[RecruitedStudy]) -> list[tuple[int, str, int]]:
    hits = Hit.objects.filter(hit_type__in={one.hit_type_id for one in studies})
    if len(studies) == 1:
        hits = hits_of(studies[0])
    taken = Count("assignments", filter=~Q(assignments__status__in=Assignment.GIVEN_UP_STATUSES))
    rows = hits.filter(expiration__gt=clock.now()).listed().annotate(taken=taken).order_by()
    facts = rows.filter(max_assignments__gt=F("taken")).values_list(
        "hit_type", "requester_annotation", "max_assignments", "taken"
    )
    return [(key, annotation, most - taken) for key, annotation, most, taken in facts]


def _places_taken(studies: Iterable[RecruitedStudy]) -> Counter[int]:
    """Taken places by study. Of old erased participations the study is unknown, so they count for
    each study of the connection."""
    connections = {one.pk: one.connection_id for one in studies}
    n_taken = Counter[int]()
    if not connections:
        return n_taken
    sessions = Session.objects.filter(study__in=connections).holding_places().order_by()
    n_taken.update(dict(sessions.values_list("study").annotate(n=Count("pk"))))
    of_them = Q(study__in=connections) | Q(study=None, connection__in=set(connections.values()))
    erased = ErasedSubmission.objects.filter(of_them, holds_place=True).order_by()
    for study, connection, n in erased.values_list("study", "connection").annotate(n=Count("pk")):
        for key in connections:
            is_of_it = study == key or (study is None and connection == connections[key])
            n_taken[key] += n if is_of_it else 0
    return n_taken
