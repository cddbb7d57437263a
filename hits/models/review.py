import hashlib
from decimal import Decimal
from typing import Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Team
from annotation.models import Study, StudyRowQuerySet
from hits.models.batches import Assignment, Batch, Hit, Worker
from hits.models.recruiting import Connection
from work.models import BaseRow

Row = TypeVar("Row", bound=models.Model)


class DeliveryState(models.TextChoices):
    INTENDED = "intended", _("not sent yet")
    CONFIRMED = "confirmed", _("confirmed")
    REFUSED = "refused", _("refused")


# The purpose of what rejected work is paid all the same.
PART = "part"


class PaymentQuerySet(StudyRowQuerySet["Payment"]):
    study_field = "assignment__hit__batch__study"

    def unsent(self) -> Self:
        return self.filter(state=DeliveryState.INTENDED)

    def standing(self) -> Self:
        return self.exclude(state=DeliveryState.REFUSED)


class Payment(BaseRow):
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
        indexes = [models.Index(fields=["state"], name="payment_state")]
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "purpose"], name="payment_once_a_purpose"
            ),
            models.CheckConstraint(
                condition=models.Q(amount_usd__gt=0), name="payment_is_positive"
            ),
        ]

    @property
    def may_have_gone(self) -> bool:
        is_sent = self.state == DeliveryState.INTENDED and self.first_sent_at is not None
        return is_sent or self.state == DeliveryState.CONFIRMED

    @property
    def unique_request_token(self) -> str:
        # The same for every attempt, so that the marketplace pays once.
        return hashlib.sha256(
            f"assay:{self.assignment.assignment_id}:{self.purpose}".encode()
        ).hexdigest()


class Message(BaseRow):
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
        indexes = [models.Index(fields=["state"], name="message_state")]


class WorkerBlock(BaseRow):
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


class WorkerNote(BaseRow):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="worker_notes")
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="notes")
    text = models.TextField(max_length=4096)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]


class Budget(BaseRow):
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
                condition=models.Q(team__isnull=False, study=None, batch=None)
                | models.Q(team=None, study__isnull=False, batch=None)
                | models.Q(team=None, study=None, batch__isnull=False),
                name="budget_of_one_thing",
            ),
            models.CheckConstraint(
                condition=models.Q(cap_usd__gte=0), name="budget_is_not_negative"
            ),
        ]


class DraftQuerySet(StudyRowQuerySet["DraftDecision"]):
    study_field = "assignment__hit__batch__study"

    def by(self, reviewer: AbstractBaseUser) -> Self:
        return self.filter(reviewer=reviewer.pk)


class DraftDecision(BaseRow):
    """What a reviewer decided about one assignment, and has not sent yet.

    Approving, rejecting, part pay and overriding exclude each other: they share a slot.
    """

    class Action(models.TextChoices):
        APPROVE = "approve", _("Approve")
        REJECT = "reject", _("Reject")
        PART_PAY = "part_pay", _("Part pay")
        OVERRIDE = "override", _("Override the rejection")
        BONUS = "bonus", _("Bonus")
        MESSAGE = "message", _("Message")
        BLOCK = "block", _("Block")
        UNBLOCK = "unblock", _("Unblock")

    SLOTS = {
        "approve": "verdict",
        "reject": "verdict",
        "part_pay": "verdict",
        "override": "verdict",
        "block": "block",
        "unblock": "block",
    }

    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="draft_decisions"
    )
    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="drafts")
    action = models.CharField(max_length=10, choices=Action)
    slot = models.CharField(max_length=10, editable=False)
    amount_usd = models.DecimalField(
        max_digits=8,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal("0.01"))],
    )
    subject = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True, help_text="Reason, feedback or message, for the worker.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DraftQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["reviewer", "assignment", "slot"], name="one_draft_a_slot"
            ),
        ]


class RejectionReason(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="rejection_reasons")
    title = models.CharField(_("name"), max_length=80)
    text = models.TextField(_("text"), max_length=1024)

    class Meta:
        ordering = ["title", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["team", "title"], name="reason_title_once_a_team"),
        ]

    def __str__(self) -> str:
        return self.title


class AnswerableQuerySet(StudyRowQuerySet[Row]):
    def unanswered(self) -> Self:
        # An unanswered row was never sent, and its state has an index.
        return self.filter(answer="", state=DeliveryState.INTENDED)

    def unsent(self) -> Self:
        return self.exclude(answer="").filter(state=DeliveryState.INTENDED)


class AppealQuerySet(AnswerableQuerySet["Appeal"]):
    study_field = "assignment__hit__batch__study"


class InquiryQuerySet(AnswerableQuerySet["Inquiry"]):
    study_field = "batch__study"


class Answerable(BaseRow):
    """What a worker wrote and the requester answers once."""

    answer = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Appeal(Answerable):
    assignment = models.OneToOneField(Assignment, on_delete=models.CASCADE, related_name="appeal")
    reason = models.TextField()
    appealed_at = models.DateTimeField()
    is_granted = models.BooleanField(default=False)

    objects = AppealQuerySet.as_manager()

    class Meta:
        ordering = ["appealed_at", "pk"]
        indexes = [models.Index(fields=["state"], name="appeal_state")]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(answer="") | models.Q(is_granted=False),
                name="granted_appeal_is_answered",
            ),
        ]


class Inquiry(Answerable):
    """A message from a worker about a HIT."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="inquiries")
    # None: about a HIT of practice.
    hit = models.ForeignKey(Hit, on_delete=models.CASCADE, null=True, related_name="inquiries")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="inquiries")
    # The marketplace's; those of one connection go up.
    number = models.PositiveBigIntegerField()
    text = models.TextField()
    sent_at = models.DateTimeField()
    is_accepted = models.BooleanField(
        default=True, help_text="The worker had accepted the HIT; else they saw its preview."
    )

    objects = InquiryQuerySet.as_manager()

    class Meta:
        ordering = ["-sent_at", "-pk"]
        indexes = [models.Index(fields=["state"], name="inquiry_state")]
        verbose_name_plural = "inquiries"
        constraints = [
            models.UniqueConstraint(fields=["batch", "number"], name="inquiry_once_a_number"),
        ]


class Statement(BaseRow):
    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="statement")
    fetched_at = models.DateTimeField()
    rewards_usd = models.DecimalField(max_digits=12, decimal_places=2)
    fees_usd = models.DecimalField(max_digits=12, decimal_places=2)
    bonuses_usd = models.DecimalField(max_digits=12, decimal_places=2)
    bonus_fees_usd = models.DecimalField(max_digits=12, decimal_places=2)
    held_usd = models.DecimalField(max_digits=12, decimal_places=2)
    n_accepted = models.PositiveIntegerField(help_text="Being worked on.")
    n_submitted = models.PositiveIntegerField()
    n_approved = models.PositiveIntegerField()
    n_rejected = models.PositiveIntegerField()
    n_returned = models.PositiveIntegerField()
    n_abandoned = models.PositiveIntegerField()

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.bonuses_usd + self.bonus_fees_usd
