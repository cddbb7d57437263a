import hashlib
import secrets
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Count, F, Min, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models import (
    Item,
    ItemSample,
    PlacedCheck,
    Protocol,
    Study,
    StudyRowQuerySet,
    Submission,
    counted,
)
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.versions import current_document
from hits.exceptions import NothingPublished, require

YEAR_SECONDS = 365 * 24 * 3600
MOST_WAVES = 1000
TOO_MANY_WAVES = _("An item's assignments make at most %(most)s waves; offer fewer of them.")


def new_batch_key() -> str:
    return secrets.token_hex(8)


# Of a HIT: its own number of assignments where it has one, as HITs of a wave have.
SIZE = Coalesce(F("max_assignments"), F("batch__max_assignments"))


class BatchQuerySet(StudyRowQuerySet["Batch"]):
    def started(self) -> Self:
        # Something of them may be on a marketplace.
        return self.exclude(hit_type_id="")

    def open(self) -> Self:
        return self.filter(closed_at=None)

    def started_of(self, slug: str) -> list["Batch"]:
        batches = list(self.of(Study.objects.named(slug)).started().select_related("study"))
        require(batches, NothingPublished(slug))
        return batches

    def parts_beside(self, draft: "Batch") -> Self:
        return self.filter(
            study=draft.study_id, round=draft.round, connection=draft.connection
        ).order_by("part")

    def progressing(self, **others: Coalesce) -> Self:
        # Each counted on its own: joined, a batch's HITs would be counted once per assignment.
        return self.annotate(
            n_hits=counted(Hit.objects.all(), "batch"),
            n_published=counted(Hit.objects.published(), "batch"),
            n_collected=counted(Assignment.objects.all(), "hit__batch"),
            **others,
        )


class Batch(models.Model):
    """One publication of a study's items, on one marketplace, for one price.

    `publisher` is the process that publishes it just now, last heard of at `publisher_seen_at`.
    """

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="batches")
    protocol = models.ForeignKey(
        Protocol,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="batches",
        help_text="The version that its workers see; frozen when the batch is planned.",
    )
    key = models.CharField(max_length=16, unique=True, default=new_batch_key, editable=False)
    connection = models.ForeignKey("Connection", on_delete=models.PROTECT, related_name="batches")
    part = models.PositiveSmallIntegerField(
        default=1, help_text="Counts the batches of a round: a pilot, then the rest."
    )
    selection = models.JSONField(
        default=dict, blank=True, help_text="Which items, and how they were drawn."
    )
    item_sample = models.OneToOneField(
        ItemSample,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="batch",
        help_text="Its items with the chance that each had.",
    )
    title = models.CharField(max_length=128)
    description = models.CharField(max_length=2000)
    keywords = models.CharField(max_length=1000, blank=True)
    reward_usd = models.DecimalField(max_digits=8, decimal_places=2)
    is_recruited = models.BooleanField(
        default=False, help_text="Whether a recruiter finds and pays who works on it."
    )
    is_invited = models.BooleanField(
        default=False,
        help_text="Whether people come by invitation links, unpaid; it is recruited, too.",
    )
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
    requirements = models.JSONField(
        default=list, blank=True, help_text="QualificationRequirements, as the API takes them."
    )
    needs_masters = models.BooleanField(default=False, help_text="Which costs a higher fee.")
    excluded_rounds = models.JSONField(
        default=list, blank=True, help_text="Whose workers may not work on this batch."
    )
    max_per_worker = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    wave_size = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="Assignments a HIT, where an item's are split over several HITs in turn.",
    )
    exclusion_type_id = models.CharField(
        max_length=64,
        blank=True,
        help_text="Of the qualification that bars a worker from the batch, once there is one.",
    )
    test_type_ids = models.JSONField(
        default=list, blank=True, help_text="Of the protocol's tests, in order, once there are any."
    )
    practice_type_id = models.CharField(
        max_length=64,
        blank=True,
        help_text="Of the qualification that the protocol's practice gives, once there is one.",
    )
    practice_hit_type_id = models.CharField(max_length=64, blank=True)
    hit_type_id = models.CharField(max_length=64, blank=True)
    launched_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="When its HITs are to expire, once that was changed."
    )
    n_added = models.PositiveSmallIntegerField(
        default=0, help_text="Assignments of each HIT that were asked for after publication."
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when nothing more is wanted of it."
    )
    collected_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When a collection last came to its end."
    )
    publishing_started_at = models.DateTimeField(null=True, blank=True)
    publisher = models.CharField(max_length=32, blank=True, editable=False)
    publisher_seen_at = models.DateTimeField(null=True, blank=True, editable=False)

    # Counted by `progressing()`; messages only for `batch_standings`.
    n_hits: int
    n_published: int
    n_collected: int
    n_inquiries: int

    objects = BatchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "batches"
        ordering = ["study", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(reward_usd__gte=Decimal(0)), name="reward_is_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(is_recruited=False) | Q(reward_usd=0), name="one_payer_of_a_batch"
            ),
            models.CheckConstraint(
                condition=Q(is_invited=False) | Q(is_recruited=True, max_per_worker__gte=1),
                name="invited_batch_has_a_quota",
            ),
            models.CheckConstraint(
                condition=Q(max_assignments__gte=1), name="at_least_one_assignment"
            ),
            models.UniqueConstraint(
                fields=["study", "round", "connection", "part"],
                name="one_batch_per_round_and_marketplace",
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.pk} of {self.study.slug}"

    @property
    def document(self) -> ProtocolDocument:
        if self.protocol is None:
            return current_document(self.study)
        return read_document(self.protocol.document)

    @property
    def is_of_all_items(self) -> bool:
        # Then items imported later become HITs of it too, when it is published again.
        return not self.selection

    @property
    def offered_until(self) -> datetime:
        started_at = self.publishing_started_at or timezone.now()
        return self.expires_at or started_at + timedelta(seconds=self.lifetime_seconds)

    def clean(self) -> None:
        if self.max_assignments and self.n_waves > MOST_WAVES:
            raise ValidationError({"wave_size": [TOO_MANY_WAVES % {"most": MOST_WAVES}]})

    @property
    def n_waves(self) -> int:
        return -(-self.max_assignments // self.wave_assignments(1))

    def wave_assignments(self, wave: int) -> int:
        size = min(self.wave_size or self.max_assignments, self.max_assignments)
        return min(size, self.max_assignments - size * (wave - 1))

    @property
    def n_hits_by_size(self) -> dict[int, int]:
        size, rest = self.wave_assignments(1), self.max_assignments % self.wave_assignments(1)
        return {size: self.max_assignments // size} | ({rest: 1} if rest else {})


class HitRecordQuerySet(models.QuerySet["Hit"]):
    def of(self, batch: Batch) -> Self:
        return self.filter(batch=batch)

    def unpublished(self) -> Self:
        return self.filter(hit_id="")

    def published(self) -> Self:
        return self.exclude(hit_id="")

    def awaited(self, *, decided_since: datetime) -> Self:
        """Those that an answer is to come for, or the marketplace's own decision on an answer
        that was submitted before this time. Complete HITs that wait for our decision are not
        among them."""
        n_here = Count("assignments")
        due = Q(assignments__status="Submitted", assignments__submitted_at__lte=decided_since)
        return (
            self.published()
            .annotate(n_here=n_here, n_due=Count("assignments", filter=due))
            .filter(Q(n_here__lt=Coalesce(F("n_answers"), SIZE)) | Q(n_due__gt=0))
        )

    def counts_of_answers(self, such: Q) -> dict[int, tuple[int, int, int]]:
        """By HIT: how many assignments came in, how many are submissions that are not rejected,
        and how many are rejected. Only HITs whose counts fulfil `such`."""
        is_rejected = Q(assignments__status="Rejected")
        usable = Q(assignments__submission__isnull=False) & ~is_rejected
        # By key alone: grouped by all that a HIT has, they take twice as long.
        return {
            pk: (taken, usable, rejected)
            for pk, taken, usable, rejected in self.order_by()
            .values("pk")
            .annotate(
                n_taken=Count("assignments__hit"),
                n_usable=Count("assignments__hit", filter=usable),
                n_rejected=Count("assignments__hit", filter=is_rejected),
            )
            .filter(such)
            .values_list("pk", "n_taken", "n_usable", "n_rejected")
        }

    def awaiting_change(self) -> Self:
        # What is intended is not what the marketplace has confirmed.
        is_resized = ~Q(confirmed_assignments=F("max_assignments")) | Q(confirmed_assignments=None)
        is_retimed = ~Q(expiry_confirmed_at=F("batch__expires_at")) | Q(expiry_confirmed_at=None)
        return self.published().filter(
            Q(is_resized, max_assignments__isnull=False)
            | Q(is_retimed, batch__expires_at__isnull=False)
        )

    def collectable(self) -> Self:
        # Published, and without all the answers that they will have, all decided.
        return (
            self.published()
            .annotate(n_decided=Count("assignments", filter=~Q(assignments__status="Submitted")))
            .filter(n_decided__lt=Coalesce(F("n_answers"), SIZE))
        )

    def short_of_answers(self) -> Self:
        return self.annotate(n_collected=Count("assignments")).filter(
            n_collected__lt=Coalesce(F("n_answers"), SIZE)
        )

    def due(self, batch: Batch) -> Self:
        rest = self.of(batch).unpublished()
        wave = rest.aggregate(first=Min("wave"))["first"]
        earlier = self.of(batch).filter(wave__lt=wave or 1)
        if wave is None or batch.closed_at or earlier.short_of_answers().exists():
            return self.none()
        return rest.filter(wave=wave)

    def uncollected_since(self, at: datetime) -> Self:
        # The longest ago first, for an interrupted collection to go on.
        return self.exclude(collected_at__gte=at).order_by(
            F("collected_at").asc(nulls_first=True), "pk"
        )


class Hit(models.Model):
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="hits")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="hits")
    hit_id = models.CharField(max_length=64, blank=True, db_index=True)
    wave = models.PositiveSmallIntegerField(default=1)
    max_assignments = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of this HIT, where not the batch's; as intended."
    )
    confirmed_assignments = models.PositiveIntegerField(
        null=True, blank=True, help_text="As the marketplace has confirmed, once that was changed."
    )
    expiry_confirmed_at = models.DateTimeField(
        null=True, blank=True, help_text="The expiry that the marketplace has confirmed."
    )
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
            models.UniqueConstraint(
                fields=["batch", "item", "wave"], name="one_hit_per_batch_item_and_wave"
            )
        ]

    def __str__(self) -> str:
        return self.hit_id or f"unpublished HIT of {self.item_id}"

    @property
    def n_assignments(self) -> int:
        return self.max_assignments or self.batch.max_assignments

    @property
    def placed_checks(self) -> list[PlacedCheck]:
        return [
            row
            for row in self.item.placed_checks.all()
            if row.protocol_id == self.batch.protocol_id
        ]

    @property
    def first_slot(self) -> int:
        return (self.wave - 1) * self.batch.wave_assignments(1)

    @property
    def unique_request_token(self) -> str:
        # The same for every attempt to publish this HIT, so that none makes a second one.
        return hashlib.sha256(self.requester_annotation.encode()).hexdigest()

    @property
    def requester_annotation(self) -> str:
        wave = f":{self.wave}" if self.wave > 1 else ""
        return f"assay:{self.batch.key}:{self.item_id}{wave}"


# By Amazon's rules.
OVERRIDABLE_FOR = timedelta(days=30)
# Characters of what a marketplace says when it refuses.
MOST_PROBLEM = 500


class Worker(models.Model):
    # A person's account on a marketplace. Studies know the annotator, by pseudonym.

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
    def of(self, batch: Batch) -> Self:
        return self.filter(hit__batch=batch)

    def unread(self) -> Self:
        return self.filter(submission=None)

    def unreadable(self) -> Self:
        return self.unread().exclude(problem="")

    def undecided(self) -> Self:
        return self.filter(status=Assignment.Status.SUBMITTED, decision="")

    def held(self) -> Self:
        return self.filter(submission__evidence__is_held=True)

    def decided_but_unsent(self) -> Self:
        return self.filter(status=Assignment.Status.SUBMITTED, decision_problem="").exclude(
            decision=""
        )

    def overridden_but_unsent(self) -> Self:
        return self.filter(
            status=Assignment.Status.REJECTED,
            decision=Assignment.Decision.OVERRIDE,
            decision_problem="",
        )

    def overridable(self) -> Self:
        return self.filter(
            status=Assignment.Status.REJECTED, submitted_at__gt=timezone.now() - OVERRIDABLE_FOR
        ).exclude(decision=Assignment.Decision.OVERRIDE, decision_problem="")

    def refused(self) -> Self:
        # The few that there are, by their index; "not equal to nothing" would read them all.
        return self.filter(decision_problem__gt="")


class Assignment(models.Model):
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
