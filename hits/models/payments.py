"""Money and words that go to a worker beside the reward: written down first, then sent."""

from __future__ import annotations

import hashlib
from decimal import Decimal

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Team
from annotation.models import Study
from hits.models.assignments import Assignment, Worker
from hits.models.batches import Batch
from hits.models.connections import Connection


class DeliveryState(models.TextChoices):
    """How far something is that the marketplace must confirm."""

    INTENDED = "intended", _("not sent yet")
    CONFIRMED = "confirmed", _("confirmed")
    REFUSED = "refused", _("refused")


PART = "part"
"""The purpose of what rejected work is paid all the same."""


class PaymentQuerySet(models.QuerySet["Payment"]):
    def of(self, study: Study) -> PaymentQuerySet:
        return self.filter(assignment__hit__batch__study=study)

    def unsent(self) -> PaymentQuerySet:
        return self.filter(state=DeliveryState.INTENDED)

    def standing(self) -> PaymentQuerySet:
        """Paid, or to be paid."""
        return self.exclude(state=DeliveryState.REFUSED)


class Payment(models.Model):
    """A bonus, or the part of a reward that rejected work is paid all the same.

    `purpose` is the same however often the same payment is requested, so that it is made once.
    """

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="payments")
    purpose = models.CharField(max_length=64)
    amount_usd = models.DecimalField(
        max_digits=8, decimal_places=2, validators=[MinValueValidator(Decimal("0.01"))]
    )
    fee_usd = models.DecimalField(max_digits=8, decimal_places=2, default=Decimal(0))
    reason = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True, help_text="Why the marketplace refused it.")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    first_sent_at = models.DateTimeField(
        null=True, blank=True, help_text="After a day the marketplace no longer knows the token."
    )
    confirmed_at = models.DateTimeField(null=True, blank=True)

    objects = PaymentQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "purpose"], name="payment_once_a_purpose"
            ),
            models.CheckConstraint(condition=Q(amount_usd__gt=0), name="payment_is_positive"),
        ]

    def __str__(self) -> str:
        return f"${self.amount_usd} for {self.assignment_id}, {self.purpose}"

    @property
    def may_have_gone(self) -> bool:
        """Whether it was paid, or sent and not heard of."""
        is_sent = self.state == DeliveryState.INTENDED and self.first_sent_at is not None
        return is_sent or self.state == DeliveryState.CONFIRMED

    @property
    def unique_request_token(self) -> str:
        """The same for every attempt, so that the marketplace pays once."""
        content = f"assay:{self.assignment.assignment_id}:{self.purpose}"
        return hashlib.sha256(content.encode()).hexdigest()


class Message(models.Model):
    """What a worker was written, and whether the marketplace passed it on."""

    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="messages")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="messages")
    assignment = models.ForeignKey(
        Assignment, on_delete=models.PROTECT, null=True, blank=True, related_name="messages"
    )
    subject = models.CharField(max_length=200)
    text = models.TextField(max_length=4096)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True)
    sent_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.subject} to {self.worker}"


class WorkerBlock(models.Model):
    """A worker whom a team's requester account does not admit; `is_active` until it is lifted."""

    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="blocks")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="blocks")
    reason = models.TextField()
    is_active = models.BooleanField(default=True)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True)
    blocked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "worker"], name="one_block_a_worker_and_connection"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.worker} at {self.connection}"


class WorkerNote(models.Model):
    """What a team wrote down about a worker, for itself alone."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="worker_notes")
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="notes")
    text = models.TextField(max_length=4096)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"on {self.worker}"


class Budget(models.Model):
    """The most that a team, a study or a batch may cost, fees and bonuses included."""

    team = models.OneToOneField(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="budget"
    )
    study = models.OneToOneField(
        Study, on_delete=models.CASCADE, null=True, blank=True, related_name="budget"
    )
    batch = models.OneToOneField(
        Batch, on_delete=models.CASCADE, null=True, blank=True, related_name="budget"
    )
    cap_usd = models.DecimalField(
        max_digits=10, decimal_places=2, validators=[MinValueValidator(Decimal(0))]
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(team__isnull=False, study=None, batch=None)
                | Q(team=None, study__isnull=False, batch=None)
                | Q(team=None, study=None, batch__isnull=False),
                name="budget_of_one_thing",
            ),
            models.CheckConstraint(condition=Q(cap_usd__gte=0), name="budget_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"${self.cap_usd} for {self.team or self.study or self.batch}"
