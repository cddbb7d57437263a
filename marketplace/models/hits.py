from datetime import datetime
from decimal import Decimal
from typing import Self

from django.db import models
from django.db.models import Count, Exists, Max, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_entity_id
from marketplace.models.people import PaidBy, Requester, Row, WorkerAccount


class HitTypeQuerySet(models.QuerySet["HitType"]):
    def open_to(self, worker: WorkerAccount, now: datetime) -> Self:
        """HIT types with HITs this worker could accept, annotated with their number and last
        expiration."""
        return self.filter(hits__in=Hit.objects.workable_by(worker, now).values("pk")).annotate(
            available_count=Count("hits"), last_expiration=Max("hits__expiration")
        )

    def mentioning(self, text: str) -> Self:
        in_values = Q(title__icontains=text) | Q(description__icontains=text)
        return self.filter(
            in_values | Q(keywords__icontains=text) | Q(requester__name__icontains=text)
        )


class HitType(Row):
    requester = models.ForeignKey(Requester, on_delete=models.PROTECT, related_name="hit_types")
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    group_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    title = models.CharField(max_length=128)
    description = models.CharField(max_length=2000)
    keywords = models.CharField(max_length=1000, blank=True)
    reward_usd = models.DecimalField(max_digits=12, decimal_places=2)
    assignment_duration_seconds = models.PositiveIntegerField()
    auto_approval_delay_seconds = models.PositiveIntegerField()
    # How long a HIT takes, as the page of the newest one says (docs/marketplace.md); none if it
    # does not say.
    estimated_seconds = models.PositiveIntegerField(null=True)
    # Once by a recruiter, the reward stays what the requester said, and is neither held nor paid.
    paid_by = models.CharField(max_length=9, choices=PaidBy, default=PaidBy.LEDGER)
    # Of all the values above: a HIT type asked for twice is one HIT type.
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    # Present on what comes from `open_to()`.
    available_count: int
    last_expiration: datetime

    objects = HitTypeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "digest"], name="one_hit_type_per_set_of_values"
            )
        ]

    def __str__(self) -> str:
        return self.title


class HitQuerySet(models.QuerySet["Hit"]):
    def of(self, requester: Requester) -> Self:
        return self.filter(requester=requester)

    def in_group(self, hit_type: HitType) -> Self:
        return self.filter(hit_type=hit_type)

    def listed(self) -> Self:
        return self.exclude(status=Hit.Status.DISPOSED)

    def due(self, now: datetime) -> Self:
        return self.filter(next_transition_at__lte=now)

    def locked(self) -> Self:
        """Lock only these rows until the transaction ends, and load what a change needs of their
        type. SQLite has no row locks: there the transaction, begun as IMMEDIATE, is the lock."""
        return self.select_related("hit_type__notification_setting").select_for_update(
            no_key=True, of=("self",)
        )

    def not_locked_by_others(self) -> Self:
        return self.select_for_update(no_key=True, of=("self",), skip_locked=True)

    def workable_by(self, worker: WorkerAccount, now: datetime) -> Self:
        return self.filter(status=Hit.Status.ASSIGNABLE, expiration__gt=now).exclude(
            Exists(Assignment.objects.live().filter(hit=OuterRef("pk"), worker=worker))
        )

    def with_counts(self) -> Self:
        status = "assignments__status"
        return self.annotate(
            accepted_count=Count("assignments", filter=Q(**{status: Assignment.Status.ACCEPTED})),
            submitted_count=Count("assignments", filter=Q(**{status: Assignment.Status.SUBMITTED})),
            decided_count=Count(
                "assignments", filter=Q(**{f"{status}__in": Assignment.DECIDED_STATUSES})
            ),
        )


class Hit(Row):
    """One question for `max_assignments` different workers."""

    class Status(models.TextChoices):
        ASSIGNABLE = "Assignable"
        UNASSIGNABLE = "Unassignable"
        REVIEWABLE = "Reviewable"
        REVIEWING = "Reviewing"
        DISPOSED = "Disposed"

    # `hit_of_requester` begins with it: an index of its own would only be written.
    requester = models.ForeignKey(
        Requester, on_delete=models.PROTECT, related_name="hits", db_index=False
    )
    hit_type = models.ForeignKey(HitType, on_delete=models.PROTECT, related_name="hits")
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    question = models.TextField()
    max_assignments = models.PositiveIntegerField()
    # The fee on top of each reward, as it was agreed when the HIT was published.
    fee_usd = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal("0.00"))
    requester_annotation = models.CharField(max_length=255, blank=True)
    unique_request_token = models.CharField(max_length=64, null=True)  # noqa: DJ001 - absent is not ""
    created_at = models.DateTimeField()
    expiration = models.DateTimeField()
    # Kept by marketplace.hits.lifecycle alone.
    expired_at = models.DateTimeField(null=True)
    status = models.CharField(max_length=12, choices=Status, default=Status.ASSIGNABLE)
    next_transition_at = models.DateTimeField(null=True)

    # Present on what comes from `with_counts()`.
    accepted_count: int
    submitted_count: int
    decided_count: int

    objects = HitQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "unique_request_token"], name="one_hit_per_request_token"
            ),
            models.CheckConstraint(
                condition=Q(max_assignments__gte=1), name="hit_asks_for_an_assignment"
            ),
        ]
        indexes = [
            models.Index(fields=["requester", "-id"], name="hit_of_requester"),
            models.Index(
                fields=["hit_type", "id"],
                condition=Q(status="Assignable"),
                name="hit_assignable_in_group",
            ),
            models.Index(
                fields=["next_transition_at"],
                condition=Q(next_transition_at__isnull=False),
                name="hit_due",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def price_usd(self) -> Decimal:
        if self.hit_type.paid_by == PaidBy.RECRUITER:
            return Decimal("0.00")
        return self.hit_type.reward_usd + self.fee_usd

    @property
    def free_count(self) -> int:
        return (
            self.max_assignments - self.accepted_count - self.submitted_count - self.decided_count
        )


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def of(self, requester: Requester) -> Self:
        return self.filter(hit__requester=requester)

    def on(self, hit: "Hit") -> Self:
        return self.filter(hit=hit)

    def by(self, worker: WorkerAccount) -> Self:
        return self.filter(worker=worker)

    def live(self) -> Self:
        """Those that count towards `max_assignments`."""
        return self.exclude(status__in=Assignment.GIVEN_UP_STATUSES)

    def holding_slots(self) -> Self:
        return self.live().exclude(status=Assignment.Status.REJECTED)

    def handed_in(self) -> Self:
        return self.filter(status__in=Assignment.HANDED_IN_STATUSES)


class Assignment(Row):
    """One worker's work on one HIT. Knowing its public id is the right to submit it."""

    class Status(models.TextChoices):
        ACCEPTED = "Accepted", _("Accepted")
        SUBMITTED = "Submitted", _("Submitted")
        APPROVED = "Approved", _("Approved")
        REJECTED = "Rejected", _("Rejected")
        RETURNED = "Returned", _("Returned")
        ABANDONED = "Abandoned", _("Abandoned")

    GIVEN_UP_STATUSES = ("Returned", "Abandoned")
    DECIDED_STATUSES = ("Approved", "Rejected")
    HANDED_IN_STATUSES = ("Submitted", "Approved", "Rejected")

    hit = models.ForeignKey(Hit, on_delete=models.PROTECT, related_name="assignments")
    worker = models.ForeignKey(WorkerAccount, on_delete=models.PROTECT, related_name="assignments")
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    status = models.CharField(max_length=9, choices=Status, default=Status.ACCEPTED)
    # The lowest number from 0 that no other assignment of the HIT held when this one was accepted,
    # those returned, abandoned or rejected not counted. Null if accepted before there were slots.
    slot = models.PositiveIntegerField(null=True)
    # What was promised when it was accepted: a HIT's type may change while it is worked on.
    reward_usd = models.DecimalField(max_digits=12, decimal_places=2)
    fee_usd = models.DecimalField(max_digits=12, decimal_places=2)
    # Its worker's, when it was accepted.
    paid_by = models.CharField(max_length=9, choices=PaidBy, default=PaidBy.LEDGER)
    accepted_at = models.DateTimeField()
    deadline = models.DateTimeField()
    # When the worker took the one extension there is (see marketplace.hits.drafts).
    extended_at = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField(null=True)
    auto_approval_at = models.DateTimeField(null=True)
    approved_at = models.DateTimeField(null=True)
    rejected_at = models.DateTimeField(null=True)
    # When the last thing happened to it that a disposal date counts from.
    closed_at = models.DateTimeField(null=True)
    # When its author took back what was handed in.
    withdrawn_at = models.DateTimeField(null=True)
    answer = models.TextField(blank=True)
    requester_feedback = models.CharField(max_length=1024, blank=True)

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["hit", "worker"],
                condition=~Q(status__in=["Returned", "Abandoned"]),
                name="one_live_assignment_per_hit_and_worker",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["Accepted", "Returned", "Abandoned"], submitted_at=None)
                | Q(
                    status__in=["Submitted", "Approved", "Rejected"],
                    submitted_at__isnull=False,
                    auto_approval_at__isnull=False,
                ),
                name="assignment_handed_in_has_its_times",
            ),
            models.CheckConstraint(
                condition=Q(paid_by=PaidBy.LEDGER)
                | Q(paid_by=PaidBy.RECRUITER, reward_usd=0, fee_usd=0),
                name="a_recruiters_assignment_promises_no_money",
            ),
        ]
        indexes = [
            models.Index(fields=["hit", "status"], name="assignment_of_hit"),
            models.Index(fields=["worker", "-id"], name="assignment_of_worker"),
            models.Index(fields=["worker", "status"], name="assignment_record"),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def receipt(self) -> str:
        return self.public_id[-4:]

    @property
    def price_usd(self) -> Decimal:
        return self.reward_usd + self.fee_usd


class HitExtension(Row):
    requester = models.ForeignKey(
        Requester, on_delete=models.PROTECT, related_name="hit_extensions"
    )
    hit = models.ForeignKey(Hit, on_delete=models.PROTECT, related_name="extensions")
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    additional_assignments = models.PositiveIntegerField()
    unique_request_token = models.CharField(max_length=64, null=True)  # noqa: DJ001 - absent is not ""
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "unique_request_token"],
                name="one_extension_per_request_token",
            )
        ]


class Transport(models.TextChoices):
    EMAIL = "Email"
    SQS = "SQS"
    SNS = "SNS"
    # Not of Amazon's: a webhook, signed with the requester's own secret.
    HTTPS = "HTTPS"


class NotificationSetting(Row):
    hit_type = models.OneToOneField(
        HitType, on_delete=models.CASCADE, related_name="notification_setting"
    )
    destination = models.CharField(max_length=1024)
    transport = models.CharField(max_length=5, choices=Transport)
    version = models.CharField(max_length=20)
    event_types = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)


class NotificationQuerySet(models.QuerySet["Notification"]):
    def due(self, now: datetime) -> Self:
        return self.filter(next_attempt_at__lte=now)

    def unsent(self) -> Self:
        return self.filter(next_attempt_at__isnull=False)

    def given_up(self) -> Self:
        return self.filter(next_attempt_at=None, sent_at=None)


class Notification(Row):
    """The outbox: written with the event, sent by the background worker."""

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="notifications")
    event_doc_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    destination = models.CharField(max_length=1024)
    transport = models.CharField(max_length=5, choices=Transport)
    event_type = models.CharField(max_length=24)
    body = models.TextField()
    created_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)
    # None once it is sent or given up.
    next_attempt_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="notification_due",
            ),
            models.Index(
                fields=["created_at"],
                condition=Q(next_attempt_at=None, sent_at=None),
                name="notification_given_up",
            ),
        ]
