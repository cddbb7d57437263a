"""What workers handed in, and what was decided about it."""

from __future__ import annotations

from django.db import models

from annotation.models import Submission
from hits.models.batches import Batch, Hit


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

    def decided_but_unsent(self) -> AssignmentRecordQuerySet:
        return self.filter(status=Assignment.Status.SUBMITTED).exclude(decision="")


class Assignment(models.Model):
    """What a worker handed in, verbatim, and what was made of it."""

    class Status(models.TextChoices):
        SUBMITTED = "Submitted"
        APPROVED = "Approved"
        REJECTED = "Rejected"

    class Decision(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"

    hit = models.ForeignKey(Hit, on_delete=models.PROTECT, related_name="assignments")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="assignments")
    assignment_id = models.CharField(max_length=64, unique=True)
    status = models.CharField(max_length=16, choices=Status)
    answer_xml = models.TextField()
    accepted_at = models.DateTimeField()
    submitted_at = models.DateTimeField()
    decision = models.CharField(max_length=8, choices=Decision, blank=True)
    feedback = models.CharField(max_length=1024, blank=True)
    problem = models.TextField(blank=True, help_text="Why no submission could be made of it.")
    submission = models.OneToOneField(
        Submission, on_delete=models.SET_NULL, null=True, blank=True, related_name="assignment"
    )

    objects = AssignmentRecordQuerySet.as_manager()

    class Meta:
        ordering = ["hit", "submitted_at", "pk"]
        # Who waits for a decision is counted on every study's first page.
        indexes = [
            models.Index(
                fields=["hit", "status", "decision", "submitted_at"], name="undecided_of_a_hit"
            )
        ]

    def __str__(self) -> str:
        return self.assignment_id
