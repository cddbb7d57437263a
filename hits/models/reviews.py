"""What reviewers prepare before it is sent, and what workers say to a rejection."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Team
from annotation.models import Study
from hits.models.assignments import Assignment
from hits.models.payments import DeliveryState

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class DraftQuerySet(models.QuerySet["DraftDecision"]):
    def of(self, study: Study) -> DraftQuerySet:
        return self.filter(assignment__hit__batch__study=study.pk)

    def by(self, reviewer: AbstractBaseUser) -> DraftQuerySet:
        return self.filter(reviewer=reviewer.pk)


class DraftDecision(models.Model):
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

    def __str__(self) -> str:
        return f"{self.action} {self.assignment_id}"


class RejectionReason(models.Model):
    """A text that a team's rejections start from."""

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


class AppealQuerySet(models.QuerySet["Appeal"]):
    def of(self, study: Study) -> AppealQuerySet:
        return self.filter(assignment__hit__batch__study=study.pk)

    def unanswered(self) -> AppealQuerySet:
        """Those that nobody has written an answer to yet."""
        return self.filter(answer="")

    def unsent(self) -> AppealQuerySet:
        return self.exclude(answer="").filter(state=DeliveryState.INTENDED)


class Appeal(models.Model):
    """What a worker says to the rejection of an assignment, and the answer to it."""

    assignment = models.OneToOneField(Assignment, on_delete=models.CASCADE, related_name="appeal")
    reason = models.TextField()
    appealed_at = models.DateTimeField()
    answer = models.TextField(blank=True)
    is_granted = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    answered_at = models.DateTimeField(null=True, blank=True)

    objects = AppealQuerySet.as_manager()

    class Meta:
        ordering = ["appealed_at", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(answer="") | Q(is_granted=False), name="granted_appeal_is_answered"
            ),
        ]

    def __str__(self) -> str:
        return f"appeal of {self.assignment_id}"
