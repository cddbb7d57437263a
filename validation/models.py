"""Validations of a study's metrics: typed rows under a version that never changes.

The rows have the fields of the records in `validation.analysis.records`; an undefined number is
NULL, with its reason. `validation.rows` turns the one into the other.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from annotation.models import Study
from metrics.exceptions import ValidationUnknown
from metrics.models import LONGEST_SIGNATURE

# Names that people give: a question's, a condition's, a system's, a candidate's.
LONGEST_NAME = 200
LONGEST_REASON = 200


def _name(**options: object) -> models.CharField[str, str]:
    return models.CharField(max_length=LONGEST_NAME, blank=True, **options)  # type: ignore[arg-type]


def _code(**options: object) -> models.CharField[str, str]:
    """A level, a coefficient, a setting: one of ours."""
    return models.CharField(max_length=32, **options)  # type: ignore[arg-type]


def _number() -> models.FloatField[float | None, float | None]:
    return models.FloatField(null=True)


def _reason() -> models.CharField[str | None, str | None]:
    return models.CharField(max_length=LONGEST_REASON, null=True)


class ValidationVersionQuerySet(models.QuerySet["ValidationVersion"]):
    def of(self, study: Study) -> ValidationVersionQuerySet:
        return self.filter(study=study)

    def newest_first(self) -> ValidationVersionQuerySet:
        return self.order_by("-number")

    def numbered(self, number: int) -> ValidationVersion:
        """The version of that number, or ValidationUnknown with those there are."""
        found = self.filter(number=number).first()
        if found is None:
            raise ValidationUnknown(number, list(self.values_list("number", flat=True)))
        return found


class ValidationVersion(models.Model):
    """A study's metrics held against people, as it was computed; never changed."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="validations")
    number = models.PositiveIntegerField(help_text="Counts from one in the study.")
    form = models.PositiveSmallIntegerField(help_text="Of the rows, as the code writes them.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of judgments and scores.")
    rules = models.JSONField(help_text="The settings it was made by.")
    settings_digest = models.CharField(max_length=64)
    seed = models.PositiveBigIntegerField(help_text="All random draws start from it.")
    n_judgments = models.PositiveIntegerField(help_text="Of the round.")
    n_rejected = models.PositiveIntegerField()
    n_counted = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_items = models.PositiveIntegerField()
    n_candidates = models.PositiveIntegerField()
    measures = models.JSONField(
        help_text="Of what there are correlations: question, scope, by, level, coefficient."
    )
    judgments_digest = models.CharField(max_length=64)
    n_study_judgments = models.PositiveIntegerField(help_text="Of all rounds.")
    last_judgment = models.PositiveBigIntegerField(help_text="The key of the last of them.")
    rejected = models.JSONField(default=list, help_text="The keys of rejected submissions.")
    since = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="followers",
        help_text="The version that its changes are told against; empty for a first.",
    )
    n_added = models.PositiveIntegerField(default=0, help_text="Judgments since then.")
    n_removed = models.IntegerField(default=0)
    n_newly_rejected = models.PositiveIntegerField(default=0)
    n_reinstated = models.PositiveIntegerField(default=0)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="validations",
    )
    made_at = models.DateTimeField(auto_now_add=True)

    objects = ValidationVersionQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        indexes = [
            models.Index(fields=["study", "settings_digest", "-number"], name="validation_by_rules")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "number"], name="validation_number_once_a_study"
            )
        ]

    def __str__(self) -> str:
        return f"validation {self.number} of {self.study_id}"


class OfVersion(models.Model):
    """A row under a version, in the order in which it was computed."""

    version = models.ForeignKey(ValidationVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of version {self.version_id}"


class OfPlace(OfVersion):
    question = _name()
    scope = _code()
    by = _name(help_text="The condition; empty for all of them.")

    class Meta:
        abstract = True


class OfMeasure(OfPlace):
    level = _code()
    coefficient = _code()

    class Meta:
        abstract = True


MEASURE = ["version", "level", "coefficient", "scope", "question"]


class ScoreSet(OfVersion):
    """A set of scores that a version rests on; a variant enters no family of tests."""

    metric = models.CharField(max_length=64)
    signature = models.CharField(max_length=LONGEST_SIGNATURE)
    higher_is_better = models.BooleanField()
    is_primary = models.BooleanField()
    n_scores = models.PositiveIntegerField()
    n_undefined = models.PositiveIntegerField()
    n_unparsed = models.PositiveIntegerField()
    n_unscored = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "metric", "signature"], name="score_set_once_a_version"
            )
        ]

    def __str__(self) -> str:
        return self.metric


class LabelSource(OfVersion):
    """A label set that the human values of a question are."""

    question = _name()
    label_version = models.PositiveIntegerField()
    signature = models.CharField(max_length=500)
    n_labels = models.PositiveIntegerField()
    n_adjudicated = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]


class Correlation(OfMeasure):
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    value = _number()
    reason = _reason()
    ci_low = _number()
    ci_high = _number()
    ci_method = _code()
    confidence = models.FloatField()
    n_resamples = models.PositiveIntegerField()
    n_resamples_undefined = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    n_groups = models.PositiveIntegerField()
    n_used = models.PositiveIntegerField()
    n_undefined = models.PositiveIntegerField()
    n_too_few = models.PositiveIntegerField()
    n_constant_human = models.PositiveIntegerField()
    n_constant_metric = models.PositiveIntegerField()
    undefined = _code()
    n_zeroed = models.PositiveIntegerField()
    n_items = models.PositiveIntegerField(null=True)
    n_systems = models.PositiveIntegerField(null=True)
    n_rows = models.PositiveIntegerField()
    n_missing = models.PositiveIntegerField()
    threshold = _number()
    n_candidates = models.PositiveIntegerField()
    n_scored = models.PositiveIntegerField()
    n_unscored = models.PositiveIntegerField()
    n_undefined_scores = models.PositiveIntegerField()
    n_unparsed = models.PositiveIntegerField()
    n_items_of_one_score = models.PositiveIntegerField()
    attainable = _number()
    share_of_ceiling = _number()
    leave_one_out = _number()
    rank = _number()
    cluster = models.PositiveSmallIntegerField(null=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="correlation_of_a_measure")]


class Comparison(OfMeasure):
    score_set_a = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    score_set_b = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    value_a = _number()
    value_b = _number()
    delta = _number()
    ci_low = _number()
    ci_high = _number()
    test = _code()
    p = _number()
    p_holm = _number()
    p_bh = _number()
    n_draws = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    reason = _reason()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="comparison_of_a_measure")]


class Ceiling(OfMeasure):
    split_half = _number()
    reliability = _number()
    attainable = _number()
    leave_one_out = _number()
    icc_single = _number()
    icc_mean = _number()
    ratings_per_candidate = _number()
    n_splits = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    reason = _reason()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="ceiling_of_a_measure")]


class Sensitivity(OfMeasure):
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    setting = _code()
    choice = _code()
    value = _number()
    rank = _number()
    base_choice = _code()
    base_value = _number()
    base_rank = _number()
    n_used = models.PositiveIntegerField()
    n_zeroed = models.PositiveIntegerField()
    reason = _reason()
    delta = _number()
    moves_rank = models.BooleanField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="sensitivity_of_a_measure")]


class SystemRow(OfPlace):
    system = _name()
    mean = _number()
    ci_low = _number()
    ci_high = _number()
    confidence = models.FloatField()
    ci_method = _code()
    n_resamples = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    n_candidates = models.PositiveIntegerField()
    rank = _number()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "scope", "question"], name="systems_of_a_place")]


class SystemScore(models.Model):
    """What a metric says of a system."""

    row = models.ForeignKey(SystemRow, on_delete=models.CASCADE, related_name="scores")
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    mean = _number()
    n_scored = models.PositiveIntegerField()
    rank = _number()
    rank_difference = _number()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.score_set_id} of {self.row_id}: {self.mean}"


class Disagreement(OfPlace):
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    better = _name()
    worse = _name()
    human_delta = models.FloatField()
    metric_delta = models.FloatField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "scope"], name="disagreements_of_a_scope")]


class WorstCandidate(OfVersion):
    question = _name()
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    rank = models.PositiveIntegerField()
    item = _name()
    candidate = _name()
    system = _name()
    condition = _name()
    human = models.FloatField()
    score = models.FloatField()
    z_human = models.FloatField()
    z_score = models.FloatField()
    residual = models.FloatField()

    class Meta:
        ordering = ["pk"]


class Plan(OfMeasure):
    score_set_a = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    score_set_b = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    n_items = models.PositiveIntegerField()
    n_annotators = _number()
    delta = _number()
    se = _number()
    power = _number()
    is_pilot = models.BooleanField()
    items_needed = models.PositiveIntegerField(null=True)
    power_wanted = models.FloatField()
    alpha = models.FloatField()
    n_studies = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["pk"]


class Scatter(OfVersion):
    """Human values beside a metric's scores; what all of them show, in words."""

    question = _name()
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    words = models.TextField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "question", "score_set"], name="scatter_once_a_version"
            )
        ]


class ScatterPoint(models.Model):
    """A candidate; or, where they are too many to draw, how many lie in a part of the plane."""

    scatter = models.ForeignKey(Scatter, on_delete=models.CASCADE, related_name="points")
    item = _name()
    candidate = _name()
    system = _name()
    human = _number()
    score = _number()
    human_high = _number()
    score_high = _number()
    n = models.PositiveIntegerField(null=True, help_text="Of a part; empty for a candidate.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"({self.human}, {self.score})"


class ReportFile(models.Model):
    """A file of a version's report, to take away."""

    version = models.ForeignKey(ValidationVersion, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=64)
    content = models.BinaryField()
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["version", "name"], name="report_file_once_a_version")
        ]

    def __str__(self) -> str:
        return self.name
