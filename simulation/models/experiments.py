"""Experiments: whose they are, what they are made of, and each run of one as a version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Subquery

from accounts.models import Membership, Team
from accounts.roles import SYSTEM_VIEWERS, Role
from annotation.models import Study
from simulation.models.catalogues import NAME_LENGTH, StoredCatalogue
from simulation.models.recommenders import StoredRecommender
from work.contents.field import ContentField

if TYPE_CHECKING:
    from accounts.models import User


class StoredExperimentQuerySet(models.QuerySet["StoredExperiment"]):
    def visible_to(self, user: User) -> StoredExperimentQuerySet:
        """Those of the user's teams in which their role may see which recommender did what."""
        if user.is_superuser:
            return self
        teams = Membership.objects.filter(user=user.pk, role__in=SYSTEM_VIEWERS).values("team")
        return self.filter(team__in=teams)

    def with_role_of(self, user: User) -> StoredExperimentQuerySet:
        """Each with the user's role in its team, for `StoredExperiment.role_of`."""
        of_user = Membership.objects.filter(team=OuterRef("team"), user=user.pk)
        return self.annotate(user_role=Subquery(of_user.values("role")[:1]))


class StoredExperiment(models.Model):
    """Targets with what annotators judged in their place, and the catalogue they are of.

    The judgments are copied, so that a result never rests on what was changed since.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="experiments")
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=NAME_LENGTH)
    catalogue = models.ForeignKey(
        StoredCatalogue, on_delete=models.RESTRICT, related_name="experiments"
    )
    made_of = models.CharField(max_length=250, help_text="Which judgments, in words.")
    study = models.ForeignKey(
        Study,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="experiments",
        help_text="Whose judgments they are.",
    )
    collection = models.CharField(
        max_length=80, blank=True, help_text="Short name of the collection whose qrels they are."
    )
    sha256 = models.CharField(max_length=64, help_text="Of the judgments.")
    n_targets = models.PositiveIntegerField()
    n_judgments = models.PositiveIntegerField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = StoredExperimentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    def role_of(self, user: User) -> Role | None:
        """The user's role, of an experiment that comes from `with_role_of`."""
        if user.is_superuser:
            return Role.OWNER
        role: str | None = self.user_role  # type: ignore[attr-defined]
        return Role(role) if role else None


class TargetJudgment(models.Model):
    """An item's grade in place of a target; below 0 where nobody could judge."""

    experiment = models.ForeignKey(
        StoredExperiment, on_delete=models.CASCADE, related_name="judgments"
    )
    target = models.TextField()
    item = models.TextField()
    grade = models.SmallIntegerField()

    class Meta:
        ordering = ["experiment", "pk"]  # the order of judgment, which one kind of user goes by

    def __str__(self) -> str:
        return f"{self.target} {self.item} {self.grade}"


class ExperimentVersion(models.Model):
    """An experiment run by some settings; its rows refer to it and never change."""

    experiment = models.ForeignKey(
        StoredExperiment, on_delete=models.CASCADE, related_name="versions"
    )
    number = models.PositiveIntegerField(help_text="Counts from one in the experiment.")
    form = models.PositiveSmallIntegerField(help_text="Of the rows, as the code writes them.")
    fingerprint = models.CharField(
        max_length=64, help_text="SHA-256 of catalogue, judgments, checkpoints and settings."
    )
    rules = models.JSONField(help_text="The settings it was made by.")
    n_pieces = models.PositiveIntegerField(default=0)
    finished_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["experiment", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "number"], name="version_number_once_an_experiment"
            ),
            models.UniqueConstraint(
                fields=["experiment", "fingerprint"], name="settings_once_an_experiment"
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of experiment {self.experiment_id}"


class SimulatedUser(models.Model):
    """A user of a version, with every choice by name."""

    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="users")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=4)
    mode = models.CharField(max_length=8)
    tolerance = models.PositiveSmallIntegerField()
    p_switch = models.FloatField()
    turn_base = models.PositiveSmallIntegerField()
    switches_on = models.CharField(max_length=4)
    on_equal = models.CharField(max_length=6)
    alternative = models.CharField(max_length=7)
    target_among = models.BooleanField()
    sticky = models.BooleanField()
    accepts = models.CharField(max_length=30)
    leave_hazard = models.FloatField()

    class Meta:
        ordering = ["version", "position"]
        constraints = [
            models.UniqueConstraint(fields=["version", "position"], name="user_once_a_version")
        ]

    def __str__(self) -> str:
        return self.name


class SimulatedRecommender(models.Model):
    """A recommender of a version; one that was trained here with its checkpoint as it was then."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="recommenders"
    )
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=NAME_LENGTH)
    spec = models.CharField(max_length=40)
    trained = models.ForeignKey(
        StoredRecommender, on_delete=models.RESTRICT, null=True, blank=True, related_name="uses"
    )
    sha256 = models.CharField(max_length=64, blank=True, help_text="Of the checkpoint.")

    class Meta:
        ordering = ["version", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "position"], name="recommender_once_a_version"
            )
        ]

    def __str__(self) -> str:
        return self.name


class DialoguePiece(models.Model):
    """The dialogues of one recommender and seed with some users, next to each other: done whole or
    not at all. `log` is a compressed log of all turns."""

    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="pieces")
    recommender = models.ForeignKey(
        SimulatedRecommender, on_delete=models.CASCADE, related_name="pieces"
    )
    seed = models.PositiveBigIntegerField()
    first_user = models.PositiveSmallIntegerField()
    n_users = models.PositiveSmallIntegerField()
    log = ContentField(null=True, editable=False)
    n_dialogues = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(null=True)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["version", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "recommender", "seed", "first_user"],
                name="piece_once_a_version",
            )
        ]

    def __str__(self) -> str:
        return f"piece {self.pk} of version {self.version_id}"
