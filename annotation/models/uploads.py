from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import models

from accounts.models import Membership, User
from accounts.roles import PERMISSIONS, Permission
from annotation.models.studies import Study
from annotation.readers.drafts import ReadingReport
from annotation.readers.mapping import ColumnMapping
from work.contents import ContentField
from work.models import BaseRow

# Templates whose candidates are ticked, of studies of alternatives; all others are of ratings.
OF_POOLS = ("alternatives", "outcomes")
EDITORS = [role.value for role, each in PERMISSIONS.items() if Permission.EDIT in each]


class UploadQuerySet(models.QuerySet["Upload"]):
    def visible_to(self, user: User) -> UploadQuerySet:
        if user.is_superuser:
            return self
        teams = Membership.objects.filter(user=user.pk, role__in=EDITORS).values("team")
        return self.filter(models.Q(uploaded_by=user.pk) | models.Q(team__in=teams))


class Upload(models.Model):
    """A file that somebody sent, what was found in it, and what its columns are said to be.

    Nothing of a study is written before it is confirmed.
    """

    class Content(models.TextChoices):
        ITEMS = "items"
        LABELS = "labels"
        SCORES = "scores"

    token = models.UUIDField(default=uuid4, unique=True, editable=False)
    content = models.CharField(max_length=8, choices=Content, default=Content.ITEMS)
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="uploads"
    )
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, null=True, blank=True)
    study = models.ForeignKey(
        Study, on_delete=models.CASCADE, null=True, blank=True, help_text="To be added to."
    )
    title = models.CharField(max_length=128, blank=True, help_text="Of a new study.")
    template = models.CharField(max_length=64, blank=True, help_text="Protocol of a new study.")
    file_name = models.CharField(max_length=200)
    n_bytes = models.PositiveBigIntegerField()
    form = models.JSONField(default=dict, help_text="How the file is read, as `FileFormat`.")
    columns = models.JSONField(default=list, help_text="What is in each column.")
    sample = models.JSONField(default=list, help_text="Its first rows: line and cells.")
    n_rows = models.PositiveIntegerField(null=True, blank=True, help_text="None until it is read.")
    has_pictures = models.BooleanField(default=False)
    mapping = models.JSONField(
        default=dict, help_text="As `ColumnMapping`, or `LabelSettings`, or `ScoreSettings`."
    )
    summary = models.JSONField(default=dict, help_text="What labels or scores come to.")
    is_mapping_known = models.BooleanField(
        default=False, help_text="Whether the mapping is of an earlier file of these columns."
    )
    faults = models.JSONField(default=list, help_text="The first of them.")
    n_faults = models.PositiveIntegerField(default=0)
    reading = models.JSONField(
        default=dict, help_text="As `ReadingReport`, with `faults` as groups of equal ones."
    )
    result = models.ForeignKey(
        Study, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = UploadQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file_name

    @property
    def reading_sentences(self) -> list[str]:
        return ReadingReport.from_plain(self.reading).sentences() if self.reading else []

    @property
    def kind(self) -> str:
        if self.study is not None:
            return self.study.kind
        makes_pool = self.template in OF_POOLS or (
            self.content == self.Content.ITEMS
            and not self.template
            and ColumnMapping.of(self.mapping).makes_pool
        )
        return Study.Kind.ALTERNATIVES if makes_pool else Study.Kind.RATING


class UploadPart(BaseRow):
    """A piece of a file's content, so that no process holds the whole of it."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="parts")
    position = models.PositiveIntegerField()
    content = ContentField()

    class Meta:
        ordering = ["upload", "position"]
        constraints = [
            models.UniqueConstraint(fields=["upload", "position"], name="part_once_an_upload")
        ]


class StoredMapping(BaseRow):
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, null=True, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True
    )
    columns_digest = models.CharField(max_length=64)
    mapping = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "columns_digest"],
                condition=models.Q(user=None),
                name="one_mapping_a_team_and_columns",
            ),
            models.UniqueConstraint(
                fields=["user", "columns_digest"],
                condition=models.Q(team=None),
                name="one_mapping_a_user_and_columns",
            ),
        ]

    @staticmethod
    def owner_of(upload: Upload) -> dict[str, Any]:
        team = upload.study.team_id if upload.study else upload.team_id
        return {"team_id": team, "user_id": None if team else upload.uploaded_by_id}
