from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import models

from accounts.models import Team, TeamRowQuerySet
from annotation.models import Study
from results.models import unpack_record
from simulation.models.catalogues import NAME_LENGTH, StoredCatalogue, StoredRecommender
from work.contents import ContentField


class StoredExperiment(models.Model):
    """Targets and a catalogue. Judgments are copied, so that later changes do not affect
    results."""

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

    objects = TeamRowQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class TargetJudgment(models.Model):
    """The grade is below 0 if annotators could not judge."""

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
    """A run with fixed settings; what came out never changes."""

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
    packed_record = ContentField(null=True, editable=False)
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

    @cached_property
    def record(self) -> dict[str, Any]:
        """Comparisons, causes, switches, improvements, notes and faults, which are read whole."""
        return unpack_record(self.packed_record) if self.packed_record else {}


class SimulatedUser(models.Model):
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
    """A trained recommender keeps the checkpoint that it had at the time."""

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
    """Dialogues of one recommender and seed with some consecutive users, stored whole. `log` is a
    compressed log of all turns."""

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


LONGEST_NAME = 100
LONGEST_REASON = 300


class OfVersion(models.Model):
    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of version {self.version_id}"


class OfRecommender(OfVersion):
    recommender = models.ForeignKey(SimulatedRecommender, on_delete=models.CASCADE)
    user = models.ForeignKey(SimulatedUser, on_delete=models.CASCADE)

    class Meta(OfVersion.Meta):
        abstract = True


class SeedResult(OfRecommender):
    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="seed_results"
    )
    seed = models.PositiveBigIntegerField()
    measure = models.CharField(max_length=LONGEST_NAME)
    turn = models.PositiveSmallIntegerField()
    mean = models.FloatField()


class TurnResult(OfRecommender):
    """Over all seeds, with an interval over targets; `reason` if there is none."""

    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="results")
    measure = models.CharField(max_length=LONGEST_NAME)
    turn = models.PositiveSmallIntegerField()
    mean = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    ci_method = models.CharField(max_length=40, blank=True)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    n_targets = models.PositiveIntegerField()
    judged = models.FloatField(null=True, help_text="Share judged of the first ten items.")


class TargetValue(OfRecommender):
    """At the last turn, mean over seeds."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="target_values"
    )
    measure = models.CharField(max_length=LONGEST_NAME)
    target = models.TextField()
    value = models.FloatField()


class SensitivityRow(OfRecommender):
    """The mean under another choice of evaluation, and Kendall's tau-b of the order of recommenders
    with the result's own order, null with a reason. For a share of the judgments, the mean over
    draws with the lowest and the highest."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="sensitivity"
    )
    measure = models.CharField(max_length=LONGEST_NAME)
    choice = models.CharField(max_length=20, help_text="qrels, carry, turn, share judged or user.")
    value = models.CharField(max_length=200)
    mean = models.FloatField()
    tau = models.FloatField(null=True)
    tau_low = models.FloatField(null=True)
    tau_high = models.FloatField(null=True)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)
