from django.conf import settings
from django.db import models

from work.models import BaseRow


class PagePreferences(BaseRow):
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="page_preferences"
    )
    has_letter_keys = models.BooleanField(
        default=True, help_text="Whether single letters decide on the review page."
    )

    class Meta:
        verbose_name_plural = "page preferences"


class StoredAnswer(BaseRow):
    """What the API answered to a write under an idempotency key, for whoever sends it again."""

    holder = models.CharField(max_length=40, help_text="A token, or a person by session.")
    address = models.CharField(max_length=500, help_text="Method and path.")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="Of the parameters.")
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    body = models.TextField(blank=True, help_text="JSON, as it was answered; encrypted.")
    access = models.JSONField(
        default=dict, help_text="What was asked for, and seen; checked before it is given again."
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["holder", "address", "key"], name="one_answer_under_a_key"
            )
        ]
