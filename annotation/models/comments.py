"""What colleagues say to each other about a candidate that annotators do not agree on."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from annotation.models.studies import Candidate, Question, Study

LONGEST_COMMENT = 2000


class DisputeCommentQuerySet(models.QuerySet["DisputeComment"]):
    def of(self, study: Study) -> DisputeCommentQuerySet:
        return self.filter(question__study=study)

    def about(
        self, candidate: Candidate | int, question: Question, round: int
    ) -> DisputeCommentQuerySet:
        return self.filter(candidate=candidate, question=question, round=round)


class DisputeComment(models.Model):
    """A comment on a candidate in dispute; it goes with the candidate, the question, the study."""

    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="comments")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="comments")
    round = models.PositiveSmallIntegerField(default=1)
    text = models.TextField(max_length=LONGEST_COMMENT)
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="dispute_comments"
    )
    written_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True, blank=True)

    objects = DisputeCommentQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["candidate", "question", "round"], name="comments_of_a_dispute")
        ]

    def __str__(self) -> str:
        return f"comment {self.pk} on {self.candidate_id}"
