"""Catalogues that experiments recommend from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from accounts.models import Membership, Team
from accounts.roles import SYSTEM_VIEWERS
from work.contents.field import ContentField

if TYPE_CHECKING:
    from accounts.models import User

NAME_LENGTH = 128


class StoredCatalogueQuerySet(models.QuerySet["StoredCatalogue"]):
    def visible_to(self, user: User) -> StoredCatalogueQuerySet:
        """Those of the user's teams in which their role may see which recommender did what."""
        if user.is_superuser:
            return self
        teams = Membership.objects.filter(user=user.pk, role__in=SYSTEM_VIEWERS).values("team")
        return self.filter(team__in=teams)


class StoredCatalogue(models.Model):
    """Items and where they lie; of drawn ones the number and the seed say it all."""

    class Kind(models.TextChoices):
        DRAWN = "drawn"
        # Of ids whose own embeddings are not at hand.
        STAND_IN = "stand-in"
        FILES = "files"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="catalogues")
    name = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(max_length=8, choices=Kind)
    n_items = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, help_text="Of all that decides what the items are.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = StoredCatalogueQuerySet.as_manager()

    class Meta:
        ordering = ["team", "name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["team", "sha256"], name="catalogue_once_a_team")
        ]

    def __str__(self) -> str:
        return self.name


class CataloguePart(models.Model):
    """A piece of the zip of a catalogue's files."""

    catalogue = models.ForeignKey(StoredCatalogue, on_delete=models.CASCADE, related_name="parts")
    position = models.PositiveIntegerField()
    content = ContentField()

    class Meta:
        ordering = ["catalogue", "position"]
        constraints = [
            models.UniqueConstraint(fields=["catalogue", "position"], name="part_once_a_catalogue")
        ]

    def __str__(self) -> str:
        return f"part {self.position} of catalogue {self.catalogue_id}"
