from django.db import models

from marketplace.models.hits import Assignment


class AssignmentDraft(models.Model):
    """What a worker has entered and not submitted yet, in the words of the requester's page."""

    assignment = models.OneToOneField(
        Assignment, on_delete=models.CASCADE, related_name="draft", primary_key=True
    )
    content = models.TextField()
    # How far the work is, such as "3 of 8 ratings given".
    progress = models.CharField(max_length=100, blank=True)
    # Counts the saves: who saves names the one they began from.
    revision = models.PositiveIntegerField(default=1)
    saved_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"draft {self.revision} of {self.assignment_id}"


class ProblemReport(models.Model):
    """What a worker found broken on a requester's page, such as a picture that does not load."""

    assignment = models.ForeignKey(
        Assignment, on_delete=models.CASCADE, related_name="problem_reports"
    )
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.text
