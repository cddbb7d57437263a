"""Participants at a recruiter: the accounts that their ids stand for, and the groups they are in.

A group is made when a study is first excluded, with all who had come to it; later ones are added
while a study that excludes them is open. Adding a participant twice is adding them once. A lost
answer may leave a group that nobody uses.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from encryption import decrypt, encrypt, reencrypt_column, seals
from marketplace import clock
from marketplace.exceptions import InvalidParameter, ParticipantUnknown, first_or_raise, require
from marketplace.hits import lifecycle
from marketplace.identifiers import new_person_id
from marketplace.models import (
    Hit,
    PaidBy,
    Participant,
    RecruitedStudy,
    RecruiterConnection,
    Session,
    WorkerAccount,
    WorkerBlock,
)
from marketplace.people.enrolment import open_worker_account
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.connections import Patience
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import (
    NotAuthorized,
    NotFound,
    RecruiterProblem,
    Refused,
    Unreadable,
)
from marketplace.users import User

logger = logging.getLogger(__name__)
AT_ONCE = 500
# As many as a few accounts that are gone make of a list; more is no matter of single ones.
MOST_REFUSED = 50
WITNESSES = 5
LOOKED_FOR_SECONDS = 600
State = RecruitedStudy.State


def group_of(recruiter: Prolific, study: RecruitedStudy) -> str:
    """The id of the group of all who have come to the study, made or extended now."""
    key, is_deleted = f"study:{study.pk}", False
    if study.external_group_id:
        try:
            _add_all(recruiter, study)
        except NotFound:
            if _was_made_anew(key):
                raise
            is_deleted = True
    if is_deleted or not study.external_group_id:
        study.external_group_id = recruiter.create_group(f"Assay {study.token}")
        study.group_size = 0
        if is_deleted:
            study.group_anew_at = clock.now()
            _note_made_anew(key)
        study.save(update_fields=["external_group_id", "group_size", "group_anew_at"])
        _add_all(recruiter, study, is_empty=True)
    return study.external_group_id


def follow_groups(connection: RecruiterConnection, recruiter: Prolific) -> None:
    grouped = RecruitedStudy.objects.filter(connection=connection).exclude(external_group_id="")
    needed = grouped.filter(excluded_by__state__in=[State.ACTIVE, State.PAUSED])
    with Patience() as patience:
        for study in needed.distinct().order_by("pk"):
            patience.try_to(partial(group_of, recruiter, study), key=f"group:{study.pk}")


def require_named_groups(connection: RecruiterConnection) -> None:
    """Raise RecruiterProblem while an open study names a deleted group: it lets in everybody who
    was in it."""
    live = RecruitedStudy.objects.filter(
        connection=connection, state__in=[State.ACTIVE, State.PAUSED]
    ).exclude(external_id="")
    problems = []
    if (at := connection.blocked_group_anew_at) and (names := _names(live, at)):
        text = _(
            "The group of those whom you block was deleted there, and is made anew. {studies} "
            "named the old one, and let them in: stop them, and draft them anew."
        )
        problems.append(text.format(studies=names))
    for study in RecruitedStudy.objects.filter(
        connection=connection, group_anew_at__isnull=False
    ).order_by("pk"):
        if study.group_anew_at and (
            names := _names(live.filter(excluded=study), study.group_anew_at)
        ):
            text = _(
                "The group of who came to “{study}” was deleted there, and is made anew. {studies} "
                "named the old one, and let them in: stop them, and draft them anew."
            )
            problems.append(text.format(study=study.name, studies=names))
    require(not problems, RecruiterProblem(" ".join(problems), code="group_deleted"))


def _names(studies: QuerySet[RecruitedStudy], before: datetime) -> str:
    names = studies.filter(created_at__lt=before).order_by("pk").values_list("name", flat=True)
    return ", ".join(f"“{name}”" for name in dict.fromkeys(names))


def blocked_group_of(recruiter: Prolific, connection: RecruiterConnection) -> str:
    """The id of the group of blocked workers, which may be empty: workers blocked later are then
    excluded from earlier studies, too."""
    if not connection.blocked_group_id:
        connection.blocked_group_id = recruiter.create_group("Assay blocked")
        connection.save(update_fields=["blocked_group_id", "blocked_worker_ids"])
    return connection.blocked_group_id


def follow_blocks(connection: RecruiterConnection, recruiter: Prolific) -> None:
    if not connection.blocked_group_id:
        return
    try:
        _follow_blocked_group(connection, recruiter)
    except NotFound:
        if _was_made_anew(f"connection:{connection.pk}"):
            raise
        connection.blocked_group_id, connection.blocked_worker_ids = "", []
        blocked_group_of(recruiter, connection)
        _note_made_anew(f"connection:{connection.pk}")
        connection.save_values(blocked_group_anew_at=clock.now())
        _follow_blocked_group(connection, recruiter)


def _was_made_anew(key: str) -> bool:
    """Whether a group that is not found was made again within a day. Then nobody deleted the new
    one, and making another each minute is useless."""
    return bool(cache.get(f"group-made-anew:{key}"))


def _note_made_anew(key: str) -> None:
    cache.set(f"group-made-anew:{key}", True, timeout=24 * 60 * 60)


def _follow_blocked_group(connection: RecruiterConnection, recruiter: Prolific) -> None:
    sessions = Session.objects.filter(connection=connection).exclude(encrypted_participant_id="")
    blocked = sessions.filter(
        worker__blocks__in=WorkerBlock.objects.filter(requester=connection.requester_id)
    )
    wanted, present = _ids_by_worker(blocked), set(connection.blocked_worker_ids)
    if set(wanted) == present:
        _look_for(recruiter, connection.blocked_group_id)
        return
    gone = _ids_by_worker(sessions.filter(worker__worker_id__in=present - set(wanted)))
    if gone:
        recruiter.remove_from_group(connection.blocked_group_id, sorted(gone.values()))
    added = sorted(one for worker, one in wanted.items() if worker not in present)
    # A few who are in it already: of a list that is refused whole nobody could say for whom.
    known = sorted(one for worker, one in wanted.items() if worker in present)[:WITNESSES]
    if added:
        _add(recruiter, connection.blocked_group_id, [*added, *known])
    RecruiterConnection.objects.filter(pk=connection.pk).update(blocked_worker_ids=sorted(wanted))


def _look_for(recruiter: Prolific, group: str) -> None:
    """Raise NotFound if the group was deleted there; asked at most every LOOKED_FOR_SECONDS."""
    if cache.add(f"group-looked-for:{group}", True, timeout=LOOKED_FOR_SECONDS):
        with suppress(Unreadable):  # of many members, say: it is there
            recruiter.find_group(group)


def _ids_by_worker(sessions: QuerySet[Session]) -> dict[str, str]:
    rows = sessions.values_list("worker__worker_id", "encrypted_participant_id")
    return {worker: decrypt(stored) for worker, stored in rows.order_by("pk")}


def _add_all(recruiter: Prolific, study: RecruitedStudy, *, is_empty: bool = False) -> None:
    rows = Session.objects.filter(study=study).exclude(encrypted_participant_id="")
    n_sessions = rows.count()
    if n_sessions == study.group_size:
        if not is_empty:
            _look_for(recruiter, study.external_group_id)
        return
    stored = rows.order_by("pk").values_list("encrypted_participant_id", flat=True)
    ids = sorted({decrypt(one) for one in stored})
    _add(recruiter, study.external_group_id, ids, is_empty=is_empty)
    RecruitedStudy.objects.filter(pk=study.pk).update(group_size=n_sessions)


def _add(recruiter: Prolific, group: str, ids: Sequence[str], *, is_empty: bool = False) -> None:
    """Add everybody whom the recruiter accepts. It refuses a whole list for one closed account, so
    a refused list is halved. In a new, empty group all may be refused."""
    waiting = [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
    n_refused, is_anybody_in = 0, is_empty
    while waiting:
        some = waiting.pop()
        try:
            recruiter.add_to_group(group, some)
            is_anybody_in = True
        except (NotAuthorized, NotFound):  # of the group, or of all
            raise
        except Refused:
            n_refused += 1
            if n_refused > MOST_REFUSED:
                raise
            if len(some) > 1:
                middle = len(some) // 2
                waiting += [some[:middle], some[middle:]]
                continue
            if not is_anybody_in and not waiting:  # it is a matter of the group
                raise
            logger.warning("a participant is not taken into group %s", group)


PURPOSE = "recruiter's participant id"


def account_of(study: RecruitedStudy, external_id: str) -> WorkerAccount:
    connection, paid_by = study.connection, study.hit_type.paid_by
    participant = find_participant(connection, external_id)
    if participant is None:
        try:
            with transaction.atomic():
                return Participant.objects.create(
                    connection=connection,
                    seal=_seals(connection, external_id)[0],
                    worker=new_participant(paid_by),
                ).worker
        except IntegrityError:  # the same person came in on another connection
            participant = find_participant(connection, external_id)
    if participant is None:
        raise ParticipantUnknown("This participant's account was erased at this moment.")
    return participant.worker


def find_participant(connection: RecruiterConnection, external_id: str) -> Participant | None:
    return (
        Participant.objects.select_related("worker__user")
        .filter(connection=connection, seal__in=_seals(connection, external_id))
        .first()
    )


def new_participant(paid_by: str) -> WorkerAccount:
    """An account without a password: nobody can sign in to it."""
    user = User(username=f"participant-{new_person_id()}")
    user.set_unusable_password()
    user.save()
    return open_worker_account(user=user, paid_by=paid_by)


def erase_participant(*, study: RecruitedStudy, worker_id: str) -> None:
    """Erase who a participant of the study's HITs is: all sessions of the account and what they
    told. Repeating it changes nothing; refused, with reasons, while work or a decision is open."""
    worker = first_or_raise(
        WorkerAccount.objects.filter(
            Q(sessions__study__hit_type=study.hit_type_id)
            | Q(assignments__hit__hit_type=study.hit_type_id),
            worker_id=worker_id,
            paid_by=PaidBy.RECRUITER,
        ).distinct(),
        InvalidParameter(
            _("%(id)s is no participant of this study.") % {"id": worker_id},
            code="unknown_participant",
        ),
    )
    # What is over by its time alone keeps nobody from it.
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
    erase_worker(worker)


def encrypted(external_id: str) -> str:
    return encrypt(external_id) if external_id else ""


def _seals(connection: RecruiterConnection, external_id: str) -> list[str]:
    return seals(f"{connection.pk}:{external_id}", purpose=PURPOSE)


def reencrypt_participants() -> int:
    """Encrypt and seal all participant ids with the first of ENCRYPTION_KEYS, so that the same
    people are still recognised; return how many changed."""
    rows = Session.objects.exclude(encrypted_participant_id="")
    return reencrypt_column(rows, "encrypted_participant_id", _seal_again)


def _seal_again(session: Session) -> list[str]:
    Participant.objects.filter(connection=session.connection, worker=session.worker).update(
        seal=_seals(session.connection, decrypt(session.encrypted_participant_id))[0]
    )
    return []
