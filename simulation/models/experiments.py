from django.contrib.contenttypes.fields import GenericRelation
from django.db import models

from accounts.models import CreatedRow, Team, TeamRowQuerySet
from annotation.models import Study
from results.models import Result
from simulation.models.catalogue import NAME_LENGTH, StoredCatalogue, StoredRecommender
from work.contents import ContentField
from work.models import BaseRow


class StoredExperiment(CreatedRow):
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
    versions = GenericRelation(
        Result, "subject_id", "subject_type", related_query_name="experiment"
    )

    objects = TeamRowQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]


class TargetJudgment(BaseRow):
    """The grade is below 0 if annotators could not judge."""

    experiment = models.ForeignKey(
        StoredExperiment, on_delete=models.CASCADE, related_name="judgments"
    )
    target = models.TextField()
    item = models.TextField()
    grade = models.SmallIntegerField()

    class Meta:
        ordering = ["experiment", "pk"]  # the order of judgment, which one kind of user goes by


class DialoguePiece(BaseRow):
    """Dialogues of one recommender and seed with some consecutive users, stored whole. `log` is a
    compressed log of all turns."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pieces")
    recommender = models.PositiveSmallIntegerField(help_text="Its position in the version.")
    trained = models.ForeignKey(
        StoredRecommender, on_delete=models.RESTRICT, null=True, blank=True, related_name="uses"
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
