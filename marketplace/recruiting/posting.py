"""A drafted study at its recruiter: published after its cost was typed back, paused, extended,
stopped, and followed.

Everything is written here first. Where an answer is lost, the study's state there says whether a
transition was made; places are said as a total.
"""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter, require
from marketplace.hits.assignments import let_recruiter_pay
from marketplace.models import PaidBy, RecruitedStudy, RecruiterCharge, RecruiterConnection
from marketplace.recruiting.charges import follow_pay
from marketplace.recruiting.connections import Patience, keep_turn, require_turn, required_recruiter
from marketplace.recruiting.drafts import MOST_PLACES, with_screen_outs
from marketplace.recruiting.places import require_work
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import (
    Cost,
    NotFound,
    PostedStudy,
    RecruiterProblem,
    StudyState,
    Uncertain,
)
from marketplace.users import User

State = RecruitedStudy.State
HOUR = timedelta(hours=1)
STATES = {
    StudyState.ACTIVE: State.ACTIVE,
    StudyState.PUBLISHING: State.ACTIVE,
    StudyState.AWAITING_REVIEW: State.ACTIVE,
    StudyState.PAUSED: State.PAUSED,
    StudyState.STOPPED: State.STOPPED,
}


def publish_study(*, study: RecruitedStudy, confirmed: Decimal, user: User | None = None) -> Cost:
    """Publish a draft whose cost the requester typed back. From then on the recruiter pays for the
    HIT type."""
    recruiter = required_recruiter(study.connection)
    try:
        posted = recruiter.study(study.external_id)
        if posted.state == StudyState.DRAFT:  # and not by a try before, whose answer was lost
            require_work(study, posted.places)
            _require_same_pay(study, posted)
        cost = with_screen_outs(
            study, recruiter, _quote(study, recruiter, posted.places, posted.places)
        )
        study.save_values(quoted_cost=cost.total)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem
    _require_confirmed(study, cost, confirmed)
    with transaction.atomic():
        _let_recruiter_pay(study)
        note("study.publish", subject=study.name, user=user, requester=study.requester)
    if posted.state == StudyState.DRAFT:
        _move_there(study, recruiter, "publish", (StudyState.ACTIVE, StudyState.PUBLISHING))
    follow_study(study, recruiter)
    study.quoted_places = None  # it is no quote of places that are still to come
    study.save(update_fields=["quoted_places"])
    return cost


def price_places(*, study: RecruitedStudy, total: int) -> Cost:
    recruiter = required_recruiter(study.connection)
    try:
        return _quote(study, recruiter, total, _n_more(study, recruiter, total))
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem


def set_places(
    *,
    study: RecruitedStudy,
    total: int,
    confirmed: Decimal | None = None,
    user: User | None = None,
) -> None:
    """Set the total number of places. If an amount is confirmed, it is the cost of the additional
    ones. Repeating it changes nothing."""
    recruiter = required_recruiter(study.connection)
    if study.state == State.STOPPED:  # whatever is heard of it, it is looked at in a minute
        RecruiterConnection.objects.filter(pk=study.connection_id).update(stopped_looked_at=None)
    try:
        follow_study(study, recruiter)  # places that were added there, or before this was cut off
        _add_places(study, recruiter, total, confirmed)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem
    detail = {"places": total}
    note("study.places", subject=study.name, user=user, requester=study.requester, detail=detail)
    follow_study(study, recruiter)


def follow_studies(connection: RecruiterConnection, recruiter: Prolific) -> None:
    """Store each open study's state at the recruiter; drafts too, since one may have been
    published unheard. Stopped studies are looked at once an hour."""
    states, now = [State.DRAFT, State.ACTIVE, State.PAUSED], clock.now()
    if is_hour_over := (connection.stopped_looked_at or now - HOUR) <= now - HOUR:
        states.append(State.STOPPED)
    studies = RecruitedStudy.objects.filter(connection=connection, state__in=states).select_related(
        "connection", "hit_type", "requester"
    )
    if is_hour_over:
        RecruiterConnection.objects.filter(pk=connection.pk).update(stopped_looked_at=now)
    with Patience() as patience:
        for study in studies.exclude(external_id="").order_by("pk"):
            patience.try_to(partial(_follow, study, recruiter), key=f"study:{study.pk}")


def _follow(study: RecruitedStudy, recruiter: Prolific) -> None:
    # One that was deleted there is over: its sessions end by their time.
    with suppress(NotFound):
        follow_study(study, recruiter)


def _add_places(
    study: RecruitedStudy, recruiter: Prolific, total: int, confirmed: Decimal | None
) -> None:
    n_more = _n_more(study, recruiter, total)
    if not n_more:
        return
    cost = _quote(study, recruiter, total, n_more)
    if confirmed is not None:
        _require_confirmed(study, cost, confirmed)
    require_turn()
    try:
        recruiter.set_places(study.external_id, total)
    except Uncertain:
        if recruiter.study(study.external_id).places != total:
            recruiter.set_places(study.external_id, total)


def _n_more(study: RecruitedStudy, recruiter: Prolific, total: int) -> int:
    require(
        1 <= total <= MOST_PLACES,
        InvalidParameter(_("A study has at most %(n)s places.") % {"n": f"{MOST_PLACES:,}"}),
    )
    posted = recruiter.study(study.external_id)
    present = posted.places
    require(
        total >= present,
        InvalidParameter(
            _("It has %(n)s places, and places can only grow.") % {"n": f"{present:,}"},
            code="fewer_places",
        ),
    )
    if total > present:
        require_work(study, total - present, n_present=present)
        _require_same_pay(study, posted)
    return total - present


def _quote(study: RecruitedStudy, recruiter: Prolific, total: int, n_places: int) -> Cost:
    if study.reward is None:
        raise InvalidParameter(_("This draft is of before rewards were kept: draft it anew."))
    nothing = Cost(Decimal("0.00"), study.connection.settings.get("currency", ""))
    cost = recruiter.cost(study.reward, n_places) if n_places else nothing
    study.save_values(quoted_places=total, quoted_cost=cost.total)
    return cost


def _require_same_pay(study: RecruitedStudy, posted: PostedStudy) -> None:
    """Refuse to spend on a study whose pay was changed at the recruiter: the confirmed amount and
    a rule's limit are for the pay decided here."""
    is_draft = posted.state == StudyState.DRAFT
    if study.reward is not None and posted.reward != study.reward:
        text = _(
            "The reward of the study at {name} is {there}, and here it is {here}. Change it back "
            "there, or add the places there."
        )
        if is_draft:
            text = _(
                "The reward of the draft at {name} is {there}, and here it is {here}. Change it "
                "back there, or discard the draft and draft the study anew."
            )
        raise InvalidParameter(text.format(**_rewards(study, posted)), code="reward_changed")
    decided = [] if study.screen_out_reward is None else [study.screen_out_reward]
    expected = tuple((pay, study.screen_out_places) for pay in decided)
    if is_draft and posted.screen_outs not in (None, expected):
        text = _(
            "What the draft at {name} pays who is screened out, or how many of them, is not what "
            "was decided here. Change it back there, or discard the draft and draft the study anew."
        )
        raise InvalidParameter(text.format(name=study.connection.name), code="screen_out_changed")


def _rewards(study: RecruitedStudy, posted: PostedStudy) -> dict[str, str]:
    currency = study.connection.settings.get("currency", "")
    there = _("an amount that cannot be read")
    if posted.reward is not None:
        there = f"{posted.reward} {currency}"
    return {"name": study.connection.name, "here": f"{study.reward} {currency}", "there": there}


def _require_confirmed(study: RecruitedStudy, cost: Cost, confirmed: Decimal) -> None:
    if confirmed not in (cost.total, cost.displayed):
        text = _("%(name)s asks %(total)s %(currency)s for it. Type this amount to go on.")
        facts = {"name": study.connection.name, "total": cost.displayed, "currency": cost.currency}
        raise InvalidParameter(text % facts, code="not_confirmed")


def _move_there(
    study: RecruitedStudy, recruiter: Prolific, transition: str, wanted: tuple[StudyState, ...]
) -> None:
    # If the answer is lost, the study's state says whether the transition was made.
    require_turn()
    try:
        try:
            recruiter.move(study.external_id, transition)
        except Uncertain:
            if recruiter.study(study.external_id).state not in wanted:
                recruiter.move(study.external_id, transition)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem


def _move(
    transition: str, wanted: StudyState, *, study: RecruitedStudy, user: User | None = None
) -> None:
    recruiter = required_recruiter(study.connection)
    if recruiter.study(study.external_id).state != wanted:
        _move_there(study, recruiter, transition, (wanted,))
    note(f"study.{transition}", subject=study.name, user=user, requester=study.requester)
    follow_study(study, recruiter)


pause_study = partial(_move, "pause", StudyState.PAUSED)
resume_study = partial(_move, "resume", StudyState.ACTIVE)
stop_study = partial(_move, "stop", StudyState.STOPPED)


def follow_study(study: RecruitedStudy, recruiter: Prolific) -> bool:
    """Write down how a study stands there, and what it was charged; whether its state is new here.

    Whoever was cut off, or heard no answer, after it was published or had more places there has
    written neither; and both can be done there by hand.
    """
    keep_turn()
    posted, before = recruiter.study(study.external_id), study.state
    after = STATES.get(posted.state, before)
    if before == State.STOPPED and posted.state == StudyState.AWAITING_REVIEW:
        after = before  # all of its places are in: nobody else comes
    places = posted.places or study.places
    if before == State.DRAFT and after != before:
        _let_recruiter_pay(study)
        _charge(study, recruiter, posted, places, study.external_id)
    if (after, places) != (before, study.places):
        study.n_payable_there = None
        rows = RecruitedStudy.objects.filter(pk=study.pk)
        rows.update(n_payable_there=None)
        # What was not done as it stood before is no matter of how it stands now.
        rows.filter(action="").update(problem="")
    study.save_values(state=after)
    is_charged = before != State.DRAFT
    follow_pay(study, recruiter, posted, is_charged=is_charged)
    # Last, so that more places are charged another time where their price can't be asked now.
    if is_charged and places > study.places:
        n_more, key = places - study.places, f"{study.external_id}:{places}"
        _charge(study, recruiter, posted, n_more, key)
    study.save_values(places=places)
    return after != before


def _let_recruiter_pay(study: RecruitedStudy) -> None:
    if study.hit_type.paid_by == PaidBy.LEDGER:
        let_recruiter_pay(study.hit_type)


def _charge(
    study: RecruitedStudy,
    recruiter: Prolific,
    posted: PostedStudy,
    n_places: int,
    external_id: str,
) -> None:
    """Record what publishing, or this many more places, cost at the recruiter's reward.
    Screened-out participants are charged one by one."""
    kind = RecruiterCharge.Kind.STUDY
    charges = RecruiterCharge.objects.filter(connection=study.connection, kind=kind)
    if study.reward is None or charges.filter(external_id=external_id).exists():
        return
    cost = recruiter.cost(posted.reward or study.reward, n_places)
    if cost.total <= 0:
        return
    RecruiterCharge.objects.get_or_create(
        connection=study.connection,
        kind=kind,
        external_id=external_id,
        defaults={
            "study": study,
            "currency": cost.currency,
            "amount": cost.total,
            "created_at": clock.now(),
        },
    )
