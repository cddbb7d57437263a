"""The HITs that a participant is given at arrival: as many as the study says, or all that are
left where those are fewer, so that whoever comes on the last place that was paid for has work.

Those are chosen that fewest have been promised, and none that the participant has done before.
Locks of other arrivals are passed over at first. Where too few are left over then, the next try
waits for them, in the order of their ids, and looks anew; so nobody is sent away while a HIT
might still be had, and nobody holds one HIT while waiting for another.
"""

from datetime import datetime

from django.db.models import Count, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from marketplace.exceptions import WorkRefused
from marketplace.hits.assignments import create_assignment
from marketplace.models import (
    Assignment,
    Hit,
    HitQuerySet,
    RecruitedStudy,
    Session,
    SessionItem,
)


class Contended(Exception):
    """Others hold what could be had. Their transactions end soon."""


def reserve_items(session: Session, *, now: datetime, waits: bool, takes_fewer: bool) -> bool:
    """Give the session its assignments, in the caller's transaction; False where no HIT is left,
    or fewer than the study says and `takes_fewer` is not set."""
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
    """The HITs that a study's participants do."""
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
