"""The accounts of participants: which one a recruiter's id stands for, and who pays it."""

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from encryption import decrypt, encrypt, reencrypt_column, seals
from marketplace import clock
from marketplace.exceptions import InvalidParameter, ParticipantUnknown
from marketplace.hits import lifecycle
from marketplace.identifiers import new_person_id
from marketplace.models import (
    Hit,
    PaidBy,
    Participant,
    RecruitedStudy,
    RecruiterConnection,
    Session,
    SessionDemographics,
    WorkerAccount,
)
from marketplace.people.enrolment import open_worker_account
from marketplace.people.erasure import erase_worker
from marketplace.users import User

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
    rows = Participant.objects.select_related("worker__user").filter(connection=connection)
    return rows.filter(seal__in=_seals(connection, external_id)).first()


def new_participant(paid_by: str) -> WorkerAccount:
    """An account without a password: nobody can sign in to it."""
    user = User(username=f"participant-{new_person_id()}")
    user.set_unusable_password()
    user.save()
    return open_worker_account(user=user, paid_by=paid_by)


def erase_participant(*, study: RecruitedStudy, worker_id: str) -> None:
    """Erase who a participant of the study's HITs is: all sessions of the account and what they
    told. Repeating it changes nothing; refused, with reasons, while work or a decision is open."""
    came = Q(sessions__study__hit_type=study.hit_type_id) | Q(
        assignments__hit__hit_type=study.hit_type_id
    )
    rows = WorkerAccount.objects.filter(came, worker_id=worker_id, paid_by=PaidBy.RECRUITER)
    worker = rows.distinct().first()
    if worker is None:
        text = _("%(id)s is no participant of this study.") % {"id": worker_id}
        raise InvalidParameter(text, code="unknown_participant")
    # What is over by its time alone keeps nobody from it.
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
    erase_worker(worker)


def encrypted(external_id: str) -> str:
    return encrypt(external_id) if external_id else ""


def _seals(connection: RecruiterConnection, external_id: str) -> list[str]:
    return seals(f"{connection.pk}:{external_id}", purpose=PURPOSE)


@transaction.atomic
def reencrypt_participants() -> int:
    """Encrypt and seal all participant ids with the first of ENCRYPTION_KEYS, so that the same
    people are still recognised; return how many changed."""
    rows = Session.objects.exclude(encrypted_participant_id="")
    return reencrypt_column(rows, "encrypted_participant_id", _seal_again)


def _seal_again(session: Session) -> list[str]:
    known = Participant.objects.filter(connection=session.connection, worker=session.worker)
    external_id = decrypt(session.encrypted_participant_id)
    known.update(seal=_seals(session.connection, external_id)[0])
    return []


@transaction.atomic
def reencrypt_demographics() -> int:
    return reencrypt_column(SessionDemographics.objects.all(), "encrypted_answers")


@transaction.atomic
def reencrypt_tokens() -> int:
    names = ("encrypted_token", "encrypted_offer", "encrypted_webhook_secret")
    rows = RecruiterConnection.objects
    return sum(reencrypt_column(rows.exclude(**{name: ""}), name) for name in names)
