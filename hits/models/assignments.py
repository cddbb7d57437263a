"""What workers handed in, and what was decided about it."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from annotation.models import Submission
from hits.models.batches import Batch, Hit

# By Amazon's rules.
OVERRIDABLE_FOR = timedelta(days=30)
# Characters of what a marketplace says when it refuses.
MOST_PROBLEM = 500


class Worker(models.Model):
    """A person's account on a marketplace. Studies know the annotator, by pseudonym."""

    marketplace = models.CharField(max_length=255)
    worker_id = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["marketplace", "worker_id"], name="worker_once_a_marketplace"
            )
        ]

    def __str__(self) -> str:
        return self.worker_id


class AssignmentRecordQuerySet(models.QuerySet["Assignment"]):
    def of(self, batch: Batch) -> AssignmentRecordQuerySet:
        return self.filter(hit__batch=batch)

    def unread(self) -> AssignmentRecordQuerySet:
        """Kept, and not yet made a submission of."""
        return self.filter(submission=None)

    def unreadable(self) -> AssignmentRecordQuerySet:
        """Those of the unread that no submission could be made of; each says why."""
        return self.unread().exclude(problem="")

    def undecided(self) -> AssignmentRecordQuerySet:
        """Submitted, with neither a decision made nor one on its way."""
        return self.filter(status=Assignment.Status.SUBMITTED, decision="")

    def held(self) -> AssignmentRecordQuerySet:
        """Those that the protocol or contradictory times hold for a person, as was measured."""
        return self.filter(submission__evidence__is_held=True)

    def decided_but_unsent(self) -> AssignmentRecordQuerySet:
        """Without those that the marketplace refused; each of them says why."""
        unsent = self.filter(status=Assignment.Status.SUBMITTED, decision_problem="")
        return unsent.exclude(decision="")

    def overridden_but_unsent(self) -> AssignmentRecordQuerySet:
        """Rejected, to be approved all the same."""
        return self.filter(
            status=Assignment.Status.REJECTED,
            decision=Assignment.Decision.OVERRIDE,
            decision_problem="",
        )

    def overridable(self) -> AssignmentRecordQuerySet:
        """Rejected, submitted within the 30 days in which that can be taken back."""
        late = timezone.now() - OVERRIDABLE_FOR
        rejections = self.filter(status=Assignment.Status.REJECTED, submitted_at__gt=late)
        return rejections.exclude(decision=Assignment.Decision.OVERRIDE, decision_problem="")

    def refused(self) -> AssignmentRecordQuerySet:
        """Those whose decision the marketplace refused; each says why."""
        # The few that there are, by their index; "not equal to nothing" would read them all.
        return self.filter(decision_problem__gt="")


class Assignment(models.Model):
    """What a worker handed in, verbatim, and what was made of it."""

    class Status(models.TextChoices):
        SUBMITTED = "Submitted"
        APPROVED = "Approved"
        REJECTED = "Rejected"

    class Decision(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"
        OVERRIDE = "override"

    hit = models.ForeignKey(Hit, on_delete=models.PROTECT, related_name="assignments")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="assignments")
    assignment_id = models.CharField(max_length=64, db_index=True)
    status = models.CharField(max_length=16, choices=Status)
    answer_xml = models.TextField()
    accepted_at = models.DateTimeField()
    submitted_at = models.DateTimeField()
    decision = models.CharField(max_length=8, choices=Decision, blank=True)
    feedback = models.CharField(max_length=1024, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_problem = models.CharField(
        max_length=MOST_PROBLEM,
        blank=True,
        db_index=True,
        help_text="Why the marketplace refused the decision.",
    )
    problem = models.TextField(blank=True, help_text="Why no submission could be made of it.")
    reading_note = models.TextField(blank=True, help_text="What was amended as it was read.")
    submission = models.OneToOneField(
        Submission, on_delete=models.SET_NULL, null=True, blank=True, related_name="assignment"
    )

    objects = AssignmentRecordQuerySet.as_manager()

    class Meta:
        ordering = ["hit", "submitted_at", "pk"]
        # Each marketplace gives its own ids: one may name what another has named already.
        constraints = [
            models.UniqueConstraint(fields=["hit", "assignment_id"], name="assignment_once_a_hit")
        ]
        # What came of a HIT is counted on most pages of a study: by the index alone.
        indexes = [
            models.Index(
                fields=["hit", "status", "decision", "submitted_at", "worker", "submission"],
                name="what_came_of_a_hit",
            )
        ]

    def __str__(self) -> str:
        return self.assignment_id
