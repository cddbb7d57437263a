"""Practice of workers, who passed it, and workers whom a batch excludes.

Practice HITs are not HITs of the study: no submission, judgment or decision is of one.
"""

import hashlib
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from annotation.models import Item, Study
from hits.models.batches import Assignment, Batch, Worker
from hits.models.review import DeliveryState
from work.models import BaseRow

IS_PAID = models.Q(answers__status=Assignment.Status.APPROVED)


class PracticeHitQuerySet(models.QuerySet["PracticeHit"]):
    def of(self, batch: Batch) -> Self:
        return self.filter(batch=batch)

    def unpublished(self) -> Self:
        return self.filter(hit_id="")

    def published(self) -> Self:
        return self.exclude(hit_id="")

    def awaited(self) -> Self:
        return (
            self.published()
            .annotate(n_settled=models.Count("answers", filter=IS_PAID))
            .filter(n_settled__lt=Coalesce(models.F("n_answers"), models.F("max_assignments")))
        )

    def paid(self) -> Self:
        return self.annotate(n_paid=models.Count("answers", filter=IS_PAID))

    def awaiting_expiry(self) -> Self:
        return self.published().filter(
            ~models.Q(expiry_confirmed_at=models.F("batch__expires_at"))
            | models.Q(expiry_confirmed_at=None),
            batch__expires_at__isnull=False,
        )


class PracticeHit(BaseRow):
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="practice_hits")
    number = models.PositiveSmallIntegerField(help_text="Of the practice's items, from 0.")
    item = models.ForeignKey(
        Item,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The study's item that is practised on, which gets no HIT of the study.",
    )
    hit_id = models.CharField(max_length=64, blank=True, db_index=True)
    reward_usd = models.DecimalField(max_digits=8, decimal_places=2)
    max_assignments = models.PositiveIntegerField()
    n_answers = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many came in, once no more can; until then empty."
    )
    expiry_confirmed_at = models.DateTimeField(
        null=True, blank=True, help_text="The batch's expiry that the marketplace has confirmed."
    )
    ended_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when it is not on offer, all work being done."
    )

    # Present on what comes from `paid()`.
    n_paid: int

    objects = PracticeHitQuerySet.as_manager()

    class Meta:
        ordering = ["batch", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "number"], name="one_practice_hit_per_batch_and_item"
            )
        ]

    @property
    def n_assignments(self) -> int:
        return self.max_assignments

    @property
    def unique_request_token(self) -> str:
        # The same for every attempt to publish this HIT, so that none makes a second one.
        return hashlib.sha256(self.requester_annotation.encode()).hexdigest()

    @property
    def requester_annotation(self) -> str:
        return f"assay:{self.batch.key}:practice:{self.number}"


class PracticeAnswer(BaseRow):
    hit = models.ForeignKey(PracticeHit, on_delete=models.CASCADE, related_name="answers")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="practice_answers")
    assignment_id = models.CharField(max_length=64)
    status = models.CharField(max_length=16, choices=Assignment.Status)
    answer_xml = models.TextField()
    accepted_at = models.DateTimeField()
    submitted_at = models.DateTimeField()
    n_right = models.PositiveSmallIntegerField(default=0)
    n_graded = models.PositiveSmallIntegerField(default=0)
    is_passed = models.BooleanField(default=False)
    problem = models.TextField(blank=True, help_text="Why it could not be graded.")

    class Meta:
        ordering = ["submitted_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["hit", "assignment_id"], name="practice_answer_once_a_hit"
            )
        ]


class PracticeResultQuerySet(models.QuerySet["PracticeResult"]):
    def of_type(self, study: Study, type_id: str) -> Self:
        return self.filter(study=study, type_id=type_id)

    def unsent(self) -> Self:
        return self.filter(state=DeliveryState.INTENDED)


class PracticeResult(BaseRow):
    """A worker's result, once it is certain: passed, or all attempts are used up.

    It is the value of the practice's qualification, granted for all batches that ask for it.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="practice_results")
    type_id = models.CharField(max_length=64, help_text="Of the practice's qualification.")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="practice_results")
    is_passed = models.BooleanField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True, help_text="Why the marketplace refused it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PracticeResultQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "type_id", "worker"], name="one_practice_result_a_worker"
            )
        ]


class ExclusionQuerySet(models.QuerySet["Exclusion"]):
    def of(self, batch: Batch) -> Self:
        return self.filter(batch=batch)

    def unsent(self) -> Self:
        return self.filter(state=DeliveryState.INTENDED)


class Exclusion(BaseRow):
    class Reason(models.TextChoices):
        LISTED = "listed", _("on a list")
        EARLIER_ROUND = "round", _("worked in an earlier round")
        EARLIER_WAVE = "wave", _("worked in an earlier wave")
        LIMIT = "limit", _("did as many HITs as one worker may")
        STUDY = "study", _("worked in a study that is excluded")
        HELD = "held", _("waits until someone has looked at the first HITs")

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="exclusions")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="exclusions")
    reason = models.CharField(max_length=8, choices=Reason)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
    problem = models.TextField(blank=True, help_text="Why the marketplace refused it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ExclusionQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "worker"], name="one_exclusion_a_worker_and_batch"
            ),
        ]


class WorkerClearance(BaseRow):
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="worker_clearances")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="clearances")
    cleared_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    cleared_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "worker"], name="worker_cleared_once_a_study")
        ]


class SharedDevice(BaseRow):
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="shared_devices")
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="shared_devices")
    n_shared = models.PositiveIntegerField()
    n = models.PositiveIntegerField(help_text="Submissions whose device is known.")
    n_others = models.PositiveIntegerField()
    others = models.JSONField(default=list, help_text="Pseudonyms of some of the other workers.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "worker"], name="shared_device_once_a_batch_and_worker"
            )
        ]
