"""How many places at a recruiter the judgments need that are still wanted; more are refused, since
whoever came on one would find nothing to do, and be sent back unpaid."""

from __future__ import annotations

import math

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    ErasedSubmission,
    HitType,
    Outcome,
    RecruitedStudy,
    Session,
)
from marketplace.recruiting.reservations import hits_of


def judgments_wanted(hit_type: HitType, annotation_prefix: str = "") -> list[int]:
    """How many judgments each open HIT still wants, those that want any."""
    study = RecruitedStudy(hit_type=hit_type, annotation_prefix=annotation_prefix)
    taken = Count("assignments", filter=~Q(assignments__status__in=Assignment.GIVEN_UP_STATUSES))
    hits = hits_of(study).filter(expiration__gt=clock.now()).listed()
    rows = hits.annotate(taken=taken).values_list("max_assignments", "taken")
    return [wanted - taken for wanted, taken in rows if wanted > taken]


def places_for(hit_type: HitType, items_per_session: int, annotation_prefix: str = "") -> int:
    """Places for all judgments that neither anybody gives nor an open study of the HITs has."""
    study = RecruitedStudy(
        hit_type=hit_type, items_per_session=items_per_session, annotation_prefix=annotation_prefix
    )
    wanted = judgments_wanted(hit_type, annotation_prefix)
    _n_elsewhere, n_needed = _beside_others(study, wanted)
    return n_needed


def places_needed(n_judgments: int, most_of_a_hit: int, items_per_session: int) -> int:
    """The judgments divided by a participant's HITs, the last of whom may have fewer; and as many
    as a single HIT wants, since a participant judges it once."""
    return max(math.ceil(n_judgments / items_per_session), most_of_a_hit)


def require_work(study: RecruitedStudy, n_more: int, *, n_present: int = 0) -> None:
    """Refuse so many places beyond the present ones where that is more than judgments need."""
    wanted = judgments_wanted(study.hit_type, study.annotation_prefix)
    if not wanted:
        raise InvalidParameter(
            _(
                "No judgment is left to give: the HITs are done, promised to participants at work, "
                "or expired. No place is needed; whoever came would find nothing to do."
            )
        )
    n_elsewhere, n_needed = _beside_others(study, wanted)
    n_free = max(0, n_present - _n_taken(study)) if n_present else 0
    if n_more > max(0, n_needed - n_free):
        n_in_all = places_needed(sum(wanted), max(wanted), study.items_per_session)
        raise InvalidParameter(_too_many(sum(wanted), n_in_all, n_free, n_elsewhere))


def free_and_needed(study: RecruitedStudy) -> tuple[int, int]:
    """Places of a study that nobody has, and those for judgments that nobody gives, nor whoever
    comes to another study of the same HITs."""
    wanted = judgments_wanted(study.hit_type, study.annotation_prefix)
    _n_elsewhere, n_needed = _beside_others(study, wanted)
    return max(0, study.places - _n_taken(study)), n_needed


def _beside_others(study: RecruitedStudy, wanted: list[int]) -> tuple[int, int]:
    """Free places of other open studies of the same HITs, and how many of this one the judgments
    need that those leave."""
    n_elsewhere = n_given = 0
    for other in _others_open(study):
        free = max(0, other.places - _n_taken(other))
        is_part = len(other.annotation_prefix) > len(study.annotation_prefix)
        theirs = judgments_wanted(other.hit_type, other.annotation_prefix) if is_part else wanted
        n_elsewhere += free
        n_given += min(free * other.items_per_session, sum(theirs))
    left = max(0, sum(wanted) - n_given)
    most = max(0, max(wanted, default=0) - n_elsewhere)
    return n_elsewhere, places_needed(left, most, study.items_per_session)


def _too_many(n_judgments: int, n_needed: int, n_free: int, n_elsewhere: int) -> str:
    places = ngettext("%(n)s place", "%(n)s places", n_needed) % {"n": f"{n_needed:,}"}
    text = ngettext(
        "%(n)s judgment is left to give, which needs %(places)s; whoever came on another would "
        "find nothing to do.",
        "%(n)s judgments are left to give, which need %(places)s; whoever came on another would "
        "find nothing to do.",
        n_judgments,
    ) % {"n": f"{n_judgments:,}", "places": places}
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


def _others_open(study: RecruitedStudy) -> list[RecruitedStudy]:
    """Other studies of the same HITs whose free places are for the same judgments."""
    rows = RecruitedStudy.objects.filter(
        hit_type=study.hit_type_id, state=RecruitedStudy.State.ACTIVE
    ).select_related("hit_type")
    mine = study.annotation_prefix
    return [
        one
        for one in rows.exclude(pk=study.pk)
        if one.annotation_prefix.startswith(mine) or mine.startswith(one.annotation_prefix)
    ]


def _n_taken(study: RecruitedStudy) -> int:
    """Places that somebody has or had and that are not free again; of those that were erased before
    that was kept, nobody knows any more of which study they were."""
    of_it = Q(study=study.pk) | Q(study=None, connection=study.connection_id)
    erased = ErasedSubmission.objects.filter(of_it)
    is_free = Q(state__in=Session.PLACE_FREE_STATES)
    # Who has done all of the work may enter the code late, and who has entered one holds it.
    is_late = Q(outcome=Outcome.COMPLETED) | ~Q(reported="")
    is_free &= ~(Q(state=Session.State.TIMED_OUT) & is_late)
    sessions = Session.objects.filter(study=study).exclude(is_free)
    return sessions.count() + erased.count()
