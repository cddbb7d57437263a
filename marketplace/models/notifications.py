from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q

from marketplace.identifiers import new_entity_id
from marketplace.models.hits import HitType
from marketplace.models.people import Requester


class Transport(models.TextChoices):
    EMAIL = "Email"
    SQS = "SQS"
    SNS = "SNS"
    # Not of Amazon's: a webhook, signed with the requester's own secret.
    HTTPS = "HTTPS"


class NotificationSetting(models.Model):
    hit_type = models.OneToOneField(
        HitType, on_delete=models.CASCADE, related_name="notification_setting"
    )
    destination = models.CharField(max_length=1024)
    transport = models.CharField(max_length=5, choices=Transport)
    version = models.CharField(max_length=20)
    event_types = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)

    def __str__(self) -> str:
        return f"{self.transport} to {self.destination}"


class NotificationQuerySet(models.QuerySet["Notification"]):
    def due(self, now: datetime) -> Self:
        return self.filter(next_attempt_at__lte=now)

    def unsent(self) -> Self:
        """Those waiting for a first or another attempt."""
        return self.filter(next_attempt_at__isnull=False)

    def given_up(self) -> Self:
        """Undelivered, and not tried again."""
        return self.filter(next_attempt_at=None, sent_at=None)


class Notification(models.Model):
    """The outbox: written with the event, sent by the background worker."""

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="notifications")
    event_doc_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    destination = models.CharField(max_length=1024)
    transport = models.CharField(max_length=5, choices=Transport)
    event_type = models.CharField(max_length=24)
    body = models.TextField()
    created_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)
    # None once it is sent or given up.
    next_attempt_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="notification_due",
            ),
            models.Index(
                fields=["created_at"],
                condition=Q(next_attempt_at=None, sent_at=None),
                name="notification_given_up",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} to {self.destination}"
