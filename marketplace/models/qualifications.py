from typing import Self

from django.db import models

from marketplace.identifiers import new_entity_id
from marketplace.models.hits import HitType
from marketplace.models.people import Requester, Row, WorkerAccount


class QualificationTypeQuerySet(models.QuerySet["QualificationType"]):
    def of(self, requester: Requester) -> Self:
        return self.filter(requester=requester)

    def existing(self) -> Self:
        return self.filter(deleted_at=None)

    def requestable(self) -> Self:
        return self.existing().filter(status=QualificationType.Status.ACTIVE)


class QualificationType(Row):
    """A requester's qualification type. The marketplace's own are in
    marketplace.qualifications.system."""

    class Status(models.TextChoices):
        ACTIVE = "Active"
        INACTIVE = "Inactive"

    requester = models.ForeignKey(
        Requester, on_delete=models.PROTECT, related_name="qualification_types"
    )
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    name = models.CharField(max_length=200)
    description = models.CharField(max_length=2000)
    keywords = models.CharField(max_length=1000, blank=True)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    # A QuestionForm and an AnswerKey, as XML; empty where there are none.
    test = models.TextField(blank=True)
    answer_key = models.TextField(blank=True)
    test_duration_seconds = models.PositiveIntegerField(null=True)
    # None: a worker can ask once only.
    retry_delay_seconds = models.PositiveIntegerField(null=True)
    auto_granted = models.BooleanField(default=False)
    auto_granted_value = models.IntegerField(default=1)
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    objects = QualificationTypeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "name"],
                condition=models.Q(deleted_at=None),
                name="one_qualification_type_of_a_name",
            ),
            models.CheckConstraint(
                condition=models.Q(auto_granted=False) | models.Q(test=""),
                name="an_auto_granted_qualification_has_no_test",
            ),
        ]


class QualificationRequest(Row):
    """A worker's asking for a qualification, from starting its test to the decision.

    Started --submit--> Submitted --accept--> Granted
       |                    +-------reject--> Rejected
       +--deadline--> Expired
    """

    class Status(models.TextChoices):
        STARTED = "Started"
        SUBMITTED = "Submitted"
        GRANTED = "Granted"
        REJECTED = "Rejected"
        EXPIRED = "Expired"

    OPEN_STATUSES = ("Started", "Submitted")

    qualification_type = models.ForeignKey(
        QualificationType, on_delete=models.PROTECT, related_name="requests"
    )
    worker = models.ForeignKey(
        WorkerAccount, on_delete=models.PROTECT, related_name="qualification_requests"
    )
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    status = models.CharField(max_length=9, choices=Status)
    # The test and its key as they were when the worker began.
    test = models.TextField(blank=True)
    answer_key = models.TextField(blank=True)
    answer = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField()
    deadline = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["qualification_type", "worker"],
                condition=models.Q(status__in=["Started", "Submitted"]),
                name="one_open_request_per_qualification_and_worker",
            )
        ]
        indexes = [
            models.Index(fields=["qualification_type", "status", "id"], name="request_of_type")
        ]


class Qualification(Row):
    class Status(models.TextChoices):
        GRANTED = "Granted"
        REVOKED = "Revoked"

    qualification_type = models.ForeignKey(
        QualificationType, on_delete=models.PROTECT, related_name="qualifications"
    )
    worker = models.ForeignKey(
        WorkerAccount, on_delete=models.PROTECT, related_name="qualifications"
    )
    status = models.CharField(max_length=7, choices=Status, default=Status.GRANTED)
    integer_value = models.IntegerField(null=True)
    # A locale instead of a number: reserved for types whose values are locales.
    country = models.CharField(max_length=2, blank=True)
    subdivision = models.CharField(max_length=3, blank=True)
    granted_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["qualification_type", "worker"],
                name="one_qualification_per_type_and_worker",
            )
        ]
        indexes = [models.Index(fields=["worker", "status"], name="qualification_of_worker")]


class QualificationChange(Row):
    """One line of a qualification's history; rows never change."""

    qualification = models.ForeignKey(
        Qualification, on_delete=models.CASCADE, related_name="changes"
    )
    status = models.CharField(max_length=7, choices=Qualification.Status)
    integer_value = models.IntegerField(null=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField()


class QualificationRequirement(Row):
    """A condition on a HIT type's workers, by a requester's qualification type or by the id of one
    of the marketplace's own."""

    class Comparator(models.TextChoices):
        LESS_THAN = "LessThan"
        LESS_THAN_OR_EQUAL_TO = "LessThanOrEqualTo"
        GREATER_THAN = "GreaterThan"
        GREATER_THAN_OR_EQUAL_TO = "GreaterThanOrEqualTo"
        EQUAL_TO = "EqualTo"
        NOT_EQUAL_TO = "NotEqualTo"
        EXISTS = "Exists"
        DOES_NOT_EXIST = "DoesNotExist"
        IN = "In"
        NOT_IN = "NotIn"

    class Guard(models.TextChoices):
        ACCEPT = "Accept"
        PREVIEW_AND_ACCEPT = "PreviewAndAccept"
        DISCOVER_PREVIEW_AND_ACCEPT = "DiscoverPreviewAndAccept"

    hit_type = models.ForeignKey(HitType, on_delete=models.CASCADE, related_name="requirements")
    position = models.PositiveSmallIntegerField()
    qualification_type = models.ForeignKey(
        QualificationType, null=True, on_delete=models.PROTECT, related_name="requirements"
    )
    system_id = models.CharField(max_length=30, blank=True)
    comparator = models.CharField(max_length=20, choices=Comparator)
    integer_values = models.JSONField(default=list)  # [95]
    locale_values = models.JSONField(default=list)  # [["US", "CA"], ["GB", ""]]
    actions_guarded = models.CharField(max_length=24, choices=Guard, default=Guard.ACCEPT)

    class Meta:
        ordering = ["hit_type", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["hit_type", "position"], name="requirements_are_numbered"
            ),
            models.CheckConstraint(
                condition=models.Q(qualification_type=None) ^ models.Q(system_id=""),
                name="requirement_names_one_qualification",
            ),
        ]

    @property
    def type_id(self) -> str:
        return (
            self.system_id or (self.qualification_type and self.qualification_type.public_id) or ""
        )
