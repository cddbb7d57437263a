"""What an experiment came to, as rows under its version."""

from __future__ import annotations

from django.db import models

from simulation.models.experiments import ExperimentVersion, SimulatedRecommender, SimulatedUser

LONGEST_NAME = 100
LONGEST_REASON = 300


class OfVersion(models.Model):
    """A row under a version, in the order in which it was computed."""

    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of version {self.version_id}"


class OfRecommender(OfVersion):
    """A row of a recommender with a user, who says tolerance and P."""

    recommender = models.ForeignKey(SimulatedRecommender, on_delete=models.CASCADE)
    user = models.ForeignKey(SimulatedUser, on_delete=models.CASCADE)

    class Meta:
        abstract = True


class SeedResult(OfRecommender):
    """The mean of a measure over targets at a turn, of one seed."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="seed_results"
    )
    recommender = models.ForeignKey(SimulatedRecommender, on_delete=models.CASCADE)
    user = models.ForeignKey(SimulatedUser, on_delete=models.CASCADE)
    seed = models.PositiveBigIntegerField()
    measure = models.CharField(max_length=LONGEST_NAME)
    turn = models.PositiveSmallIntegerField()
    mean = models.FloatField()

    class Meta:
        ordering = ["pk"]


class TurnResult(OfRecommender):
    """The same over all seeds, with its interval over targets; `reason` where there is none."""

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

    class Meta:
        ordering = ["pk"]


class TargetValue(OfRecommender):
    """A target's value of a measure at the last turn, the mean over seeds."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="target_values"
    )
    measure = models.CharField(max_length=LONGEST_NAME)
    target = models.TextField()
    value = models.FloatField()

    class Meta:
        ordering = ["pk"]


class SwitchCount(OfRecommender):
    """How often a user had another item in mind, and how their dialogues ended."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="switches"
    )
    n_switches = models.PositiveIntegerField(help_text="Critiques with an alternative in mind.")
    n_dialogues = models.PositiveIntegerField()
    n_found = models.PositiveIntegerField(help_text="Dialogues that ended with an accepted item.")
    n_left = models.PositiveIntegerField(help_text="Dialogues whose user left before that.")

    class Meta:
        ordering = ["pk"]


class ComparisonRow(OfVersion):
    """Two users of a recommender, or two recommenders under a user; p after Holm beside it."""

    class What(models.TextChoices):
        USERS = "users"
        RECOMMENDERS = "recommenders"

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="comparisons"
    )
    what = models.CharField(max_length=12, choices=What)
    within = models.CharField(max_length=200, help_text="Name of the recommender, or the user.")
    a = models.CharField(max_length=200)
    b = models.CharField(max_length=200)
    measure = models.CharField(max_length=LONGEST_NAME)
    turn = models.PositiveSmallIntegerField()
    delta = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    test = models.CharField(max_length=40)
    p = models.FloatField(null=True)
    p_adjusted = models.FloatField(null=True)
    n_targets = models.PositiveIntegerField()
    n_better = models.PositiveIntegerField()
    n_worse = models.PositiveIntegerField()
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    class Meta:
        ordering = ["pk"]


class CauseRow(OfRecommender):
    """The 2 x 2 of user (first, this one) and qrels (target, target and alternatives)."""

    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="causes")
    measure = models.CharField(max_length=LONGEST_NAME)
    turn = models.PositiveSmallIntegerField()
    base_target = models.FloatField(null=True)
    base_all = models.FloatField(null=True)
    meta_target = models.FloatField(null=True)
    meta_all = models.FloatField(null=True)
    user_delta = models.FloatField(null=True)
    user_ci_low = models.FloatField(null=True)
    user_ci_high = models.FloatField(null=True)
    qrels_delta = models.FloatField(null=True)
    qrels_ci_low = models.FloatField(null=True)
    qrels_ci_high = models.FloatField(null=True)
    total_delta = models.FloatField(null=True)
    total_ci_low = models.FloatField(null=True)
    total_ci_high = models.FloatField(null=True)
    interaction_delta = models.FloatField(null=True)
    interaction_ci_low = models.FloatField(null=True)
    interaction_ci_high = models.FloatField(null=True)

    class Meta:
        ordering = ["pk"]


class ImprovementRow(OfVersion):
    """The best user's row against the first user's, by both kinds of percentage."""

    version = models.ForeignKey(
        ExperimentVersion, on_delete=models.CASCADE, related_name="improvements"
    )
    recommender = models.ForeignKey(SimulatedRecommender, on_delete=models.CASCADE)
    measure = models.CharField(max_length=LONGEST_NAME)
    base = models.FloatField()
    best = models.FloatField()
    best_user = models.CharField(max_length=200)
    percent_of_base = models.FloatField(null=True)
    percent_symmetric = models.FloatField(null=True)
    best_of = models.PositiveSmallIntegerField()
    expected_gain_se = models.FloatField(
        help_text="Standard errors by which the best of so many equal rows exceeds their mean."
    )

    class Meta:
        ordering = ["pk"]


class SensitivityRow(OfRecommender):
    """The mean under another choice of evaluation, and how far the order of all recommenders is
    then the result's own: Kendall's tau-b, null with a reason; of a share of the judgments the mean
    over draws, with the lowest and the highest."""

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

    class Meta:
        ordering = ["pk"]


class ExperimentNote(OfVersion):
    """What a reader must know beside the numbers; a fault is a cell that cannot be."""

    version = models.ForeignKey(ExperimentVersion, on_delete=models.CASCADE, related_name="notes")
    text = models.TextField()
    is_fault = models.BooleanField(default=False)

    class Meta:
        ordering = ["pk"]
