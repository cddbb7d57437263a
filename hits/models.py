"""A requester's own record of what it published: a mirror in Mechanical Turk's nouns.

The marketplace's record is the truth for answers and money; a row lost here can be
collected again.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Count, F, Q
from django.db.models.functions import Coalesce

from annotation.counts import counted
from annotation.models import Item, Study, Submission
from hits.exceptions import NothingPublished

YEAR_SECONDS = 365 * 24 * 3600


def new_batch_key() -> str:
    return secrets.token_hex(8)


class BatchQuerySet(models.QuerySet["Batch"]):
    def of(self, study: Study) -> BatchQuerySet:
        return self.filter(study=study)

    def started(self) -> BatchQuerySet:
        """Those of which something may be on a marketplace."""
        return self.exclude(hit_type_id="")

    def started_of(self, slug: str) -> list[Batch]:
        """The study's started ones, or NothingPublished where there are none."""
        study = Study.objects.named(slug)
        batches = list(self.of(study).started().select_related("study"))
        if not batches:
            raise NothingPublished(slug)
        return batches

    def planned_like(self, draft: Batch) -> BatchQuerySet:
        """The one that stands where the draft would: same study, round and marketplace."""
        return self.filter(study=draft.study_id, round=draft.round, profile=draft.profile)

    def progressing(self) -> BatchQuerySet:
        """With `n_hits`, `n_published` and `n_collected`, each counted on its own: joined, the
        HITs of a batch would be counted once for every assignment."""
        return self.annotate(
            n_hits=counted(Hit.objects.all(), "batch"),
            n_published=counted(Hit.objects.published(), "batch"),
            n_collected=counted(Assignment.objects.all(), "hit__batch"),
        )


class Batch(models.Model):
    """One publication of a study's items, on one marketplace, for one price.

    `publisher` is the process that publishes it just now, last heard of at `publisher_seen_at`.
    """

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="batches")
    key = models.CharField(max_length=16, unique=True, default=new_batch_key, editable=False)
    profile = models.CharField(max_length=32, default="local")
    title = models.CharField(max_length=128)
    description = models.CharField(max_length=2000)
    keywords = models.CharField(max_length=1000, blank=True)
    reward_usd = models.DecimalField(max_digits=8, decimal_places=2)
    max_assignments = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1)])
    assignment_duration_seconds = models.PositiveIntegerField(
        default=3600, validators=[MinValueValidator(30), MaxValueValidator(YEAR_SECONDS)]
    )
    lifetime_seconds = models.PositiveIntegerField(
        default=7 * 24 * 3600, validators=[MinValueValidator(30), MaxValueValidator(YEAR_SECONDS)]
    )
    auto_approval_delay_seconds = models.PositiveIntegerField(
        default=3 * 24 * 3600, validators=[MaxValueValidator(30 * 24 * 3600)]
    )
    round = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    hit_type_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    publishing_started_at = models.DateTimeField(null=True, blank=True)
    publisher = models.CharField(max_length=32, blank=True, editable=False)
    publisher_seen_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = BatchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "batches"
        ordering = ["study", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(reward_usd__gte=Decimal(0)), name="reward_is_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(max_assignments__gte=1), name="at_least_one_assignment"
            ),
            # A study's published version belongs here once there are protocols.
            models.UniqueConstraint(
                fields=["study", "round", "profile"], name="one_batch_per_round_and_marketplace"
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.pk} of {self.study.slug}"


class HitRecordQuerySet(models.QuerySet["Hit"]):
    def of(self, batch: Batch) -> HitRecordQuerySet:
        return self.filter(batch=batch)

    def unpublished(self) -> HitRecordQuerySet:
        return self.filter(hit_id="")

    def published(self) -> HitRecordQuerySet:
        return self.exclude(hit_id="")

    def collectable(self) -> HitRecordQuerySet:
        """Published, and not known to us with every answer they will have, all decided."""
        decided = Count("assignments", filter=~Q(assignments__status="Submitted"))
        wanted = Coalesce(F("n_answers"), F("batch__max_assignments"))
        return self.published().annotate(n_decided=decided).filter(n_decided__lt=wanted)

    def uncollected_since(self, at: datetime) -> HitRecordQuerySet:
        """Less those that an unfinished collection had looked at, the longest ago first."""
        late = self.exclude(collected_at__gte=at)
        return late.order_by(F("collected_at").asc(nulls_first=True), "pk")


class Hit(models.Model):
    """One item of a batch; `hit_id` is empty until the marketplace has given one."""

    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="hits")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="hits")
    hit_id = models.CharField(max_length=64, blank=True, db_index=True)
    n_answers = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many came in, once no more can; until then empty."
    )
    collected_at = models.DateTimeField(
        null=True, blank=True, help_text="By a collection that has not come to its end."
    )

    objects = HitRecordQuerySet.as_manager()

    class Meta:
        ordering = ["batch", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "item"], name="one_hit_per_batch_and_item")
        ]

    def __str__(self) -> str:
        return self.hit_id or f"unpublished HIT of {self.item_id}"

    @property
    def unique_request_token(self) -> str:
        """The same for every attempt to publish this HIT, so that none makes a second one."""
        return hashlib.sha256(self.requester_annotation.encode()).hexdigest()

    @property
    def requester_annotation(self) -> str:
        """What the marketplace keeps with the HIT, and gives back in ListHITs."""
        return f"assay:{self.batch.key}:{self.item_id}"


class Worker(models.Model):
    """A person's account on a marketplace. Studies know the annotator, by pseudonym."""

    profile = models.CharField(max_length=32)
    worker_id = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["profile", "worker_id"], name="worker_once_a_profile")
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
