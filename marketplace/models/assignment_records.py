from django.db import models

from marketplace.identifiers import new_entity_id
from marketplace.models.hits import Assignment, Hit
from marketplace.models.people import Requester, Row


class ReviewPolicy(Row):
    class Level(models.TextChoices):
        ASSIGNMENT = "Assignment"
        HIT = "HIT"

    hit = models.ForeignKey(Hit, on_delete=models.CASCADE, related_name="review_policies")
    level = models.CharField(max_length=10, choices=Level)
    name = models.CharField(max_length=64)
    # As the requester sent them: [{"Key": ..., "Values": [...], "MapEntries": [...]}].
    parameters = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["hit", "level"], name="one_review_policy_per_level")
        ]


class SubjectType(models.TextChoices):
    ASSIGNMENT = "Assignment"
    HIT = "HIT"


class ReviewResult(Row):
    policy = models.ForeignKey(ReviewPolicy, on_delete=models.CASCADE, related_name="results")
    # Results of one application of the policy have the same action id.
    action_id = models.CharField(max_length=30)
    subject_type = models.CharField(max_length=10, choices=SubjectType)
    subject_id = models.CharField(max_length=30)
    question_id = models.CharField(max_length=128, blank=True)
    key = models.CharField(max_length=64)
    value = models.TextField()
    created_at = models.DateTimeField()


class ReviewAction(Row):
    class Status(models.TextChoices):
        INTENDED = "Intended"
        SUCCEEDED = "Succeeded"
        FAILED = "Failed"
        CANCELLED = "Cancelled"

    policy = models.ForeignKey(ReviewPolicy, on_delete=models.CASCADE, related_name="actions")
    action_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    name = models.CharField(max_length=64)
    target_type = models.CharField(max_length=10, choices=SubjectType)
    target_id = models.CharField(max_length=30)
    status = models.CharField(max_length=9, choices=Status)
    result = models.TextField(blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    completed_at = models.DateTimeField()


class Appeal(Row):
    assignment = models.OneToOneField(
        "marketplace.Assignment", on_delete=models.PROTECT, related_name="appeal"
    )
    reason = models.TextField()
    created_at = models.DateTimeField()
    answer = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True)


class AssignmentDraft(Row):
    assignment = models.OneToOneField(
        Assignment, on_delete=models.CASCADE, related_name="draft", primary_key=True
    )
    content = models.TextField()
    # How far the work is, such as "3 of 8 ratings given".
    progress = models.CharField(max_length=100, blank=True)
    # Counts the saves: who saves names the one they began from.
    revision = models.PositiveIntegerField(default=1)
    saved_at = models.DateTimeField()


class ProblemReport(Row):
    assignment = models.ForeignKey(
        Assignment, on_delete=models.CASCADE, related_name="problem_reports"
    )
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField()


class DevicePrint(Row):
    """A hash of the device and network that an assignment was submitted from. The salt differs by
    requester, so hashes of two requesters cannot be compared."""

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="+")
    assignment = models.OneToOneField(
        Assignment, on_delete=models.CASCADE, related_name="device_print"
    )
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [models.Index(fields=["requester", "digest"], name="device_of_requester")]
