"""Which tables hold data of workers, what each is for, who reads it and how long it stays.

The privacy page, the export and the erasure all go by TABLES, so that a page never promises
what the code does not do. A table that refers to workers has its row here (a test says which
is missing).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db.models import ForeignKey, Model, QuerySet

from encryption import decrypt
from marketplace import clock
from marketplace.models import (
    Appeal,
    Assignment,
    AssignmentDraft,
    AuditEntry,
    BonusPayment,
    DevicePrint,
    Intent,
    Invitation,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    LocationStatement,
    Participant,
    Payout,
    PayoutMethod,
    ProblemReport,
    Qualification,
    QualificationChange,
    QualificationRequest,
    RecruiterCharge,
    ReviewAction,
    ReviewResult,
    Session,
    SessionDemographics,
    SessionItem,
    SurplusAnswer,
    WorkerAccount,
    WorkerBlock,
    WorkerMessage,
)
from marketplace.users import User


@dataclass(frozen=True)
class PersonalTable:
    """A table with workers' data: which rows are a worker's, what is exported, and whether erasure
    deletes them."""

    model: type[Model]
    # The lookup that leads to the worker, or to the worker's user or assignments' ids.
    lookup: str
    is_deleted: bool
    leads_to: str = "worker"
    # What is exported; empty for all columns but those omitted.
    fields: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    # What is exported of the rows it refers to, by path.
    more: tuple[str, ...] = ()
    # Columns that are exported decrypted.
    encrypted: tuple[str, ...] = ()

    def rows(self, worker: WorkerAccount) -> QuerySet[Model]:
        value: Any = {
            "worker": worker.pk,
            "user": worker.user_id,
            "assignments": Assignment.objects.by(worker).values("public_id"),
        }[self.leads_to]
        return self.model._default_manager.filter(**{self.lookup: value}).order_by("pk")

    def columns(self) -> tuple[str, ...]:
        if self.fields:
            return self.fields + self.more
        # What another row is called stands for it; its key would mean nothing outside.
        own = [
            field.name
            for field in self.model._meta.concrete_fields
            if not field.primary_key and not isinstance(field, ForeignKey)
        ]
        return tuple(name for name in own if name not in self.omitted) + self.more


OF_AN_ASSIGNMENT = ("assignment__public_id",)
SENDER = ("requester__name",)

TABLES = (
    PersonalTable(
        User,
        "pk",
        leads_to="user",
        is_deleted=False,
        fields=("username", "first_name", "last_name", "email", "date_joined", "last_login"),
    ),
    PersonalTable(
        EmailConfirmation,
        "email_address__user",
        leads_to="user",
        is_deleted=True,
        fields=("created", "sent"),
    ),
    PersonalTable(
        EmailAddress,
        "user",
        leads_to="user",
        is_deleted=True,
        fields=("email", "verified", "primary"),
    ),
    PersonalTable(
        Authenticator,
        "user",
        leads_to="user",
        is_deleted=True,
        fields=("type", "created_at", "last_used_at"),
    ),
    PersonalTable(
        UserSession,
        "user",
        leads_to="user",
        is_deleted=True,
        fields=("created_at", "last_seen_at", "ip", "user_agent"),
    ),
    PersonalTable(WorkerAccount, "pk", is_deleted=False, omitted=("payee_id",)),
    PersonalTable(LocationStatement, "worker", is_deleted=True),
    PersonalTable(WorkerMessage, "worker", is_deleted=True, more=SENDER),
    PersonalTable(
        Assignment,
        "worker",
        is_deleted=False,
        omitted=("fee_usd",),
        more=("hit__public_id", "hit__hit_type__title", "hit__requester__name"),
    ),
    PersonalTable(AssignmentDraft, "assignment__worker", is_deleted=True, more=OF_AN_ASSIGNMENT),
    PersonalTable(ProblemReport, "assignment__worker", is_deleted=True, more=OF_AN_ASSIGNMENT),
    # The hash is for comparison inside the marketplace, and is given to nobody.
    PersonalTable(
        DevicePrint,
        "assignment__worker",
        is_deleted=True,
        omitted=("digest",),
        more=OF_AN_ASSIGNMENT,
    ),
    PersonalTable(Appeal, "assignment__worker", is_deleted=False, more=OF_AN_ASSIGNMENT),
    PersonalTable(
        ReviewResult,
        "subject_id__in",
        leads_to="assignments",
        is_deleted=False,
        fields=("subject_id", "question_id", "key", "value", "created_at"),
    ),
    PersonalTable(
        ReviewAction,
        "target_id__in",
        leads_to="assignments",
        is_deleted=False,
        fields=("target_id", "name", "status", "result", "completed_at"),
    ),
    PersonalTable(Qualification, "worker", is_deleted=False, more=("qualification_type__name",)),
    PersonalTable(
        QualificationChange,
        "qualification__worker",
        is_deleted=False,
        more=("qualification__qualification_type__name",),
    ),
    # The test and its key are the requester's, and others will take it.
    PersonalTable(
        QualificationRequest,
        "worker",
        is_deleted=False,
        omitted=("test", "answer_key"),
        more=("qualification_type__name",),
    ),
    PersonalTable(
        BonusPayment,
        "assignment__worker",
        is_deleted=False,
        omitted=("fee_usd", "unique_request_token"),
        more=(*OF_AN_ASSIGNMENT, *SENDER),
    ),
    PersonalTable(LedgerAccount, "worker", is_deleted=False),
    PersonalTable(
        LedgerEntry,
        "account__worker",
        is_deleted=False,
        omitted=("balance_usd",),
        more=("transaction__kind", "transaction__created_at"),
    ),
    PersonalTable(LedgerTransaction, "assignment__worker", is_deleted=False, more=OF_AN_ASSIGNMENT),
    PersonalTable(Payout, "worker", is_deleted=False, more=("batch__created_at",)),
    PersonalTable(
        PayoutMethod,
        "worker",
        is_deleted=True,
        omitted=("details_seal",),
        encrypted=("encrypted_details",),
    ),
    # What a code or a code's reward is, the recruiter's own site says.
    PersonalTable(
        SessionItem,
        "session__worker",
        is_deleted=True,
        more=(*OF_AN_ASSIGNMENT, "session__public_id"),
    ),
    PersonalTable(SurplusAnswer, "assignment__worker", is_deleted=False, more=OF_AN_ASSIGNMENT),
    PersonalTable(
        Intent,
        "session__worker",
        is_deleted=True,
        fields=("kind", "text", "amount", "currency", "state", "created_at", "done_at"),
    ),
    PersonalTable(
        RecruiterCharge,
        "session__worker",
        is_deleted=False,
        fields=("kind", "currency", "amount", "created_at"),
    ),
    PersonalTable(
        SessionDemographics,
        "session__worker",
        is_deleted=True,
        more=("session__study__name",),
        encrypted=("encrypted_answers",),
    ),
    PersonalTable(
        Session,
        "worker",
        is_deleted=True,
        more=("study__name", "connection__name"),
        encrypted=("encrypted_participant_id",),
    ),
    # The token opens the account: an export that is passed on must not.
    PersonalTable(Invitation, "worker", is_deleted=True, omitted=("token",), more=("study__name",)),
    PersonalTable(
        Participant, "worker", is_deleted=True, omitted=("seal",), more=("connection__name",)
    ),
    # The reason is the requester's note, which the Requester API promises not to pass on.
    PersonalTable(WorkerBlock, "worker", is_deleted=True, omitted=("reason",), more=SENDER),
    PersonalTable(AuditEntry, "user", leads_to="user", is_deleted=False),
)


def export(worker: WorkerAccount) -> dict[str, Any]:
    return {
        "format": "assay-worker-data-1",
        "worker_id": worker.worker_id,
        "exported_at": clock.now().isoformat(timespec="seconds"),
        "data": {table.model.__name__: list(_records(table, worker)) for table in TABLES},
    }


def _records(table: PersonalTable, worker: WorkerAccount) -> Iterator[dict[str, Any]]:
    columns = table.columns()
    for values in table.rows(worker).values_list(*columns).iterator():
        yield {
            name.replace("__", "."): (value and decrypt(value))
            if name in table.encrypted
            else _plain(value)
            for name, value in zip(columns, values, strict=True)
        }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
