from typing import Self

from django.conf import settings
from django.contrib.contenttypes.fields import GenericRelation
from django.db import models
from django.db.models import Count, Q

from accounts.models import Team, TeamRowQuerySet
from annotation.models import Study
from annotation.readers.drafts import ReadingReport
from results.models import Result
from work.contents import ContentField
from work.models import BaseRow


class CollectionQuerySet(TeamRowQuerySet["Collection"]):
    def with_n_files(self) -> Self:
        return self.annotate(
            n_runs=Count("files", filter=Q(files__kind="run")),
            n_qrels=Count("files", filter=Q(files__kind__in=("qrels", "assessors"))),
        )

    def called(self, words: str) -> Self:
        return self.filter(Q(name__icontains=words) | Q(slug__icontains=words))


class Collection(BaseRow):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="collections")
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=128)
    studies = models.ManyToManyField(
        Study, blank=True, related_name="collections", help_text="Whose judgments make its qrels."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="collections",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    results = GenericRelation(Result, "subject_id", "subject_type", related_query_name="collection")

    objects = CollectionQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]


def result_collection(result: Result) -> Collection:
    assert isinstance(result.subject, Collection)
    return result.subject


NAME_LENGTH = 100


class CollectionFileQuerySet(models.QuerySet["CollectionFile"]):
    def runs(self) -> Self:
        return self.filter(kind=CollectionFile.Kind.RUN)

    def qrels(self) -> Self:
        return self.filter(kind=CollectionFile.Kind.QRELS)

    def embeddings(self) -> Self:
        return self.filter(kind=CollectionFile.Kind.EMBEDDINGS)

    def people_first(self) -> Self:
        by_judge = models.Case(
            models.When(made_by=CollectionFile.MadeBy.MACHINE, then=2),
            models.When(made_by=CollectionFile.MadeBy.SIMULATED, then=1),
            default=0,
        )
        return self.order_by(by_judge, "name")

    def usable(self) -> Self:
        """Those that were read without a fault, and whose omissions were confirmed."""
        return self.filter(n_lines__isnull=False, n_faults=0, is_confirmed=True)

    def unconfirmed(self) -> Self:
        return self.filter(n_lines__isnull=False, n_faults=0, is_confirmed=False)


class CollectionFile(BaseRow):
    """A file of a collection, what was read of it, and what is wrong with it.

    A file with a fault is shown with all of them and used for nothing.
    """

    class Kind(models.TextChoices):
        RUN = "run"
        QRELS = "qrels"
        # Several assessors' grades of a document, whose names are in column 2 (qrels_jg).
        ASSESSORS = "assessors"
        EMBEDDINGS = "embeddings"
        CATALOGUE = "catalogue"
        # To be audited: deleted when that is done.
        AUDITED = "audited"

    class MadeBy(models.TextChoices):
        PEOPLE = "people"
        MACHINE = "machine"
        # Some of the answers, or all: study exports mark them in the file.
        SIMULATED = "simulated"
        UNKNOWN = "unknown"

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="files")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(
        max_length=NAME_LENGTH, help_text="What tables call it; a run's tag where it has one."
    )
    family = models.CharField(
        max_length=NAME_LENGTH,
        blank=True,
        help_text="Runs of one family are left out together, such as those of one model.",
    )
    made_by = models.CharField(
        max_length=9, choices=MadeBy, default=MadeBy.PEOPLE, help_text="Who judged, of qrels."
    )
    assessor = models.CharField(max_length=NAME_LENGTH, blank=True)
    round = models.CharField(max_length=20, blank=True)
    rule = models.CharField(max_length=NAME_LENGTH, blank=True)
    study = models.ForeignKey(
        Study,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Whose judgments qrels were made of.",
    )
    file_name = models.CharField(max_length=200)
    n_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    tag = models.CharField(max_length=NAME_LENGTH, blank=True, help_text="A run's own name.")
    n_lines = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Or vectors; empty until the file is read."
    )
    n_topics = models.PositiveIntegerField(default=0)
    n_documents = models.PositiveBigIntegerField(default=0)
    n_tied = models.PositiveBigIntegerField(
        default=0, help_text="Lines of a run with the score of another of their topic."
    )
    n_infinite = models.PositiveBigIntegerField(default=0)
    n_relevant = models.PositiveBigIntegerField(default=0, help_text="Grades above 0.")
    n_unjudged = models.PositiveBigIntegerField(
        default=0, help_text="Grades below 0: pooled and not judged."
    )
    n_assessors = models.PositiveIntegerField(
        default=0, help_text="Whom column 2 names, of several assessors' grades."
    )
    n_dimensions = models.PositiveIntegerField(default=0, help_text="Of embeddings.")
    signature = models.TextField(
        blank=True, help_text="By which model, of which catalogue, embeddings were made here."
    )
    faults = models.JSONField(default=list, help_text="The first of them: line and text.")
    n_faults = models.PositiveIntegerField(default=0)
    warnings = models.JSONField(
        default=list, help_text="The first of them: line and text; the file is used all the same."
    )
    n_warnings = models.PositiveBigIntegerField(default=0)
    reading = models.JSONField(
        default=dict, help_text="What was read and left out of a run or qrels, and why."
    )
    is_confirmed = models.BooleanField(
        default=True, help_text="False until somebody agrees to the rows that are left out."
    )
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CollectionFileQuerySet.as_manager()

    class Meta:
        ordering = ["collection", "kind", "name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "kind", "name"], name="file_name_once_a_collection_and_kind"
            )
        ]

    @property
    def judgments(self) -> str:
        """Which judgments qrels were made of, whatever the rule; empty where nothing says."""
        whose = self.study.slug if self.study else self.assessor
        if not whose:
            return ""
        return f"{whose}, round {self.round}" if self.round else whose

    @property
    def is_usable(self) -> bool:
        return self.n_lines is not None and not self.n_faults and self.is_confirmed

    @property
    def reading_sentences(self) -> list[str]:
        return ReadingReport.from_plain(self.reading).sentences() if self.reading else []


class FilePart(BaseRow):
    file = models.ForeignKey(CollectionFile, on_delete=models.CASCADE, related_name="parts")
    position = models.PositiveIntegerField()
    content = ContentField()

    class Meta:
        ordering = ["file", "position"]
        constraints = [
            models.UniqueConstraint(fields=["file", "position"], name="part_once_a_file")
        ]


class FileTopic(BaseRow):
    file = models.ForeignKey(CollectionFile, on_delete=models.CASCADE, related_name="topics")
    topic = models.TextField()

    class Meta:
        ordering = ["file", "pk"]
        indexes = [models.Index(fields=["file", "topic"], name="topic_of_a_file")]


class FileFit(BaseRow):
    """How many of a run's documents and topics a catalogue or vectors know by name."""

    source = models.ForeignKey(CollectionFile, on_delete=models.CASCADE, related_name="fits")
    run = models.ForeignKey(CollectionFile, on_delete=models.CASCADE, related_name="+")
    n_documents = models.PositiveBigIntegerField()
    n_known = models.PositiveBigIntegerField()
    n_topics = models.PositiveIntegerField()
    n_known_topics = models.PositiveIntegerField()

    class Meta:
        ordering = ["source", "run"]
        constraints = [
            models.UniqueConstraint(fields=["source", "run"], name="fit_once_a_source_and_run")
        ]


class SampleFit(BaseRow):
    source = models.ForeignKey(CollectionFile, on_delete=models.CASCADE, related_name="sample_fits")
    sample = models.ForeignKey(
        "results.Result", on_delete=models.CASCADE, related_name="source_fits"
    )
    n_targets = models.PositiveIntegerField()
    n_known = models.PositiveIntegerField()

    class Meta:
        ordering = ["source", "sample"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "sample"], name="fit_once_a_source_and_sample"
            )
        ]
