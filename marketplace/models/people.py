from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_access_key_id, new_person_id
from work.models import BaseRow


class Row(BaseRow):
    """Base of the marketplace's models."""

    class Meta:
        abstract = True

    def save_values(self, **values: Any) -> None:
        """Set these fields, and save no others."""
        for name, value in values.items():
            setattr(self, name, value)
        self.save(update_fields=list(values))


class PaidBy(models.TextChoices):
    """Who pays for work: the requester's balance here, or the recruiter of the participant; never
    both (see marketplace.money.ledger)."""

    LEDGER = "ledger", _("The marketplace")
    RECRUITER = "recruiter", _("The recruiter")


class Requester(Row):
    public_id = models.CharField(max_length=14, unique=True, default=new_person_id)
    name = models.CharField(max_length=150, unique=True)
    # What participants read in its place, to whom nobody else's HITs are offered; empty: the name.
    display_name = models.CharField(max_length=150, blank=True)
    users = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="marketplace_requesters"
    )
    # Those of them who may see who participants are at their recruiter.
    owners = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="owned_requesters"
    )
    # What a worker may add to the time allotted, once an assignment; 0 allows nothing.
    more_time_percent = models.PositiveSmallIntegerField(default=50)
    # Empty until the first webhook (see marketplace.people.enrolment).
    encrypted_webhook_secret = models.TextField(blank=True)
    created_at = models.DateTimeField()

    @property
    def name_for_participants(self) -> str:
        return self.display_name or self.name


class AccessKey(Row):
    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="access_keys")
    access_key_id = models.CharField(max_length=20, unique=True, default=new_access_key_id)
    # Empty for a key issued before secrets were stored, until it is used.
    encrypted_secret = models.TextField(blank=True)
    label = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()
    # To the minute: not every call writes it.
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.access_key_id


class RateBucket(Row):
    access_key = models.OneToOneField(
        AccessKey, on_delete=models.CASCADE, related_name="rate_bucket", primary_key=True
    )
    tokens = models.FloatField()
    filled_at = models.DateTimeField()


class WorkerAccount(Row):
    """A person who signs in to the worker site. The profile is the basis of system qualifications;
    an empty value is unknown and meets no requirement."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="worker_account"
    )
    worker_id = models.CharField(max_length=14, unique=True, default=new_person_id)
    created_at = models.DateTimeField()
    country = models.CharField(max_length=2, blank=True)  # ISO 3166-1 alpha-2
    subdivision = models.CharField(max_length=3, blank=True)  # ISO 3166-2, without the country
    languages = models.JSONField(default=list, blank=True)  # ISO 639, such as ["en", "de"]
    adult_confirmed_at = models.DateTimeField(null=True)
    # A participant's account is the recruiter's to pay: it has no earnings.
    paid_by = models.CharField(max_length=9, choices=PaidBy, default=PaidBy.LEDGER)
    # By which an account of earnings refers to whom it belongs; whom a recruiter pays has none,
    # so that the database itself refuses such an account.
    payee_id = models.CharField(max_length=14, null=True, unique=True, default=new_person_id)  # noqa: DJ001 - absent is not ""
    # Since when the operator counts this worker among the Masters.
    master_since = models.DateTimeField(null=True)
    # Since when nothing here says who it was (see marketplace.people.erasure).
    erased_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(paid_by=PaidBy.LEDGER, payee_id__isnull=False)
                | models.Q(paid_by=PaidBy.RECRUITER, payee_id=None),
                name="a_recruiters_participant_is_no_payee",
            )
        ]

    def __str__(self) -> str:
        return self.worker_id


class LocationStatement(Row):
    """Where a worker or an operator said the worker is, and what the network said then. Only
    marketplace.people.locations adds rows; they never change."""

    class Source(models.TextChoices):
        WORKER = "worker", _("The worker")
        OPERATOR = "operator", _("An operator")

    worker = models.ForeignKey(
        WorkerAccount, on_delete=models.CASCADE, related_name="location_statements"
    )
    country = models.CharField(max_length=2)
    subdivision = models.CharField(max_length=3, blank=True)
    source = models.CharField(max_length=8, choices=Source)
    # By the proxy in front of the site, where one says so; empty where none does.
    network_country = models.CharField(max_length=2, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["worker", "-id"], name="location_of_worker")]


class WorkerBlock(Row):
    # The worker never reads the reason.
    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="worker_blocks")
    worker = models.ForeignKey(WorkerAccount, on_delete=models.CASCADE, related_name="blocks")
    reason = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "worker"], name="one_block_per_requester_and_worker"
            )
        ]


class WorkerMessage(Row):
    """Of a requester to a worker, or of the worker to the requester, about a HIT."""

    requester = models.ForeignKey(
        Requester, on_delete=models.PROTECT, related_name="messages_to_workers"
    )
    worker = models.ForeignKey(WorkerAccount, on_delete=models.CASCADE, related_name="messages")
    is_from_worker = models.BooleanField(default=False)
    hit = models.ForeignKey(
        "marketplace.Hit", null=True, on_delete=models.SET_NULL, related_name="messages"
    )
    subject = models.CharField(max_length=200)
    text = models.TextField()
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    # By e-mail too, where the worker has an address (see marketplace.notifications.delivery).
    mail_attempts = models.PositiveSmallIntegerField(default=0)
    # None once it is sent or given up, and where nothing is to be sent.
    next_mail_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["worker", "-id"], name="message_to_worker"),
            models.Index(
                fields=["requester", "id"],
                condition=models.Q(is_from_worker=True),
                name="message_of_worker",
            ),
            models.Index(
                fields=["next_mail_at"],
                condition=models.Q(next_mail_at__isnull=False),
                name="message_mail_due",
            ),
            models.Index(
                fields=["created_at"],
                condition=models.Q(next_mail_at=None, mailed_at=None, mail_attempts__gt=0),
                name="message_mail_given_up",
            ),
        ]


class AuditEntry(Row):
    """An action that an operator may look up. Only marketplace.audit_log adds rows; they never
    change."""

    created_at = models.DateTimeField()
    # Either may be absent: a command has no user, an operator no requester.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    requester = models.ForeignKey(Requester, null=True, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["requester", "-id"], name="audit_of_requester")]
        verbose_name_plural = "audit entries"


# Clock shifts and injected faults: tables that are only read where MARKETPLACE_TESTING is on.


class ClockShift(Row):
    ahead = models.DurationField()


class Fault(Row):
    class Kind(models.TextChoices):
        THROTTLE = "throttle", "Answer ThrottlingException"
        DROP = "drop", "Commit, then drop the connection"
        DELAY = "delay", "Answer late"

    operation = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=Kind)
    remaining = models.PositiveIntegerField()
    delay_seconds = models.FloatField(default=0)
