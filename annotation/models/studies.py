from __future__ import annotations

import re
import secrets
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.fields import GenericRelation
from django.db import models
from django.db.models import Aggregate, Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext, gettext_lazy as _

from accounts.roles import Permission
from annotation.exceptions import ProtocolFrozen, QuestionUnknown, StudyUnknown
from error_codes import CodedText
from results.models import Result
from work.contents import ContentField
from work.models import BaseRow

BLIND_KEY_LENGTH = 12

if TYPE_CHECKING:
    from typing import TypeAlias, TypedDict

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django_stubs_ext import WithAnnotations


class StudyQuerySet(models.QuerySet["Study"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> StudyQuerySet:
        if getattr(user, "is_superuser", False):
            return self.filter(rehearsal_of=None)
        if not user.pk:
            return self.none()
        # A rehearsal has neither a team nor an owner, so it is in no list.
        of_teams = _rows("accounts.Membership").filter(user=user.pk).values("team")
        single = _rows("annotation.StudyMembership").filter(user=user.pk).values("study")
        return self.filter(Q(team=None, owner=user.pk) | Q(team__in=of_teams) | Q(pk__in=single))

    def rehearsals_for(self, user: AbstractBaseUser | AnonymousUser) -> StudyQuerySet:
        return self.filter(rehearsal_of__in=Study.objects.visible_to(user).order_by().values("pk"))

    def named(self, slug: str) -> Study:
        study = self.filter(slug=slug).first()
        if study is None:
            known = self.filter(rehearsal_of=None).order_by("slug")
            raise StudyUnknown(slug, list(known.values_list("slug", flat=True)))
        return study

    def current(self) -> StudyQuerySet:
        return self.filter(archived_at=None)

    def archived(self) -> StudyQuerySet:
        return self.exclude(archived_at=None)

    def with_n_items(self) -> StudyQuerySet:
        return self.annotate(n_items=counted(_rows("annotation.Item"), "study"))

    def counted(self) -> StudyQuerySet:
        return self.with_n_items().annotate(
            # Through the annotators, who are fewer than the items.
            n_submissions=counted(_rows("annotation.Submission"), "annotator__study"),
            n_judgments=counted(_rows("annotation.Judgment"), "question__study"),
        )


def _rows(model: str) -> models.QuerySet[Any]:
    rows: models.QuerySet[Any] = apps.get_model(model).objects.all()
    return rows


def new_salt() -> str:
    return secrets.token_hex(16)


class Study(models.Model):
    class Kind(models.TextChoices):
        RATING = "rating", _("Rating of responses")
        ALTERNATIVES = "alternatives", _("Acceptable alternatives")

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=128)
    kind = models.CharField(max_length=16, choices=Kind)
    instructions = models.TextField(blank=True)
    justification_min_length = models.PositiveSmallIntegerField(default=0)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True
    )
    team = models.ForeignKey(
        "accounts.Team", on_delete=models.PROTECT, null=True, blank=True, related_name="studies"
    )
    rehearsal_of = models.OneToOneField(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="rehearsal",
        help_text="The study whose copy simulated annotators answer; it has no team and no owner.",
    )
    pseudonym_salt = models.CharField(max_length=32, default=new_salt, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="Since when it is out of the way: read as before, launched no more.",
    )
    judgments_version = models.PositiveBigIntegerField(
        default=0,
        editable=False,
        help_text="Counts the changes of judgments, of their rejection and of flags.",
    )
    scores_version = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="Counts the changes of metrics' scores."
    )
    datasheet_answers = models.JSONField(
        default=dict,
        editable=False,
        help_text="Authors' answers to questions of HEDS, by section and number.",
    )

    computed_results = GenericRelation(
        Result, "subject_id", "subject_type", related_query_name="study"
    )

    objects = StudyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "studies"
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(rehearsal_of=None) | Q(team=None, owner=None),
                name="rehearsals_are_of_no_team",
            )
        ]

    def __str__(self) -> str:
        return self.slug

    def question(self, name: str = "") -> Question:
        questions = {question.name: question for question in self.questions.all()}
        chosen = questions.get(name) if name else next(iter(questions.values()), None)
        if chosen is None:
            raise QuestionUnknown(self.slug, name, list(questions))
        return chosen


class Question(BaseRow):
    class Level(models.TextChoices):
        NOMINAL = "nominal"
        ORDINAL = "ordinal"
        INTERVAL = "interval"
        RATIO = "ratio"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="questions")
    name = models.CharField(max_length=64)
    wording = models.TextField()
    kind = models.CharField(
        max_length=16,
        default="line",
        help_text="How it is asked.",
    )
    level = models.CharField(max_length=16, choices=Level, default=Level.INTERVAL)
    scale_min = models.FloatField(default=0)
    scale_max = models.FloatField(default=100)
    low_label = models.CharField(max_length=64, blank=True)
    high_label = models.CharField(max_length=64, blank=True)
    categories = models.JSONField(
        default=list, blank=True, help_text="Labels of a nominal scale; a value is an index here."
    )
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["study", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "name"], name="question_name_once_a_study"),
            models.CheckConstraint(
                condition=Q(scale_max__gt=F("scale_min")), name="question_scale_is_a_range"
            ),
        ]

    @property
    def is_one_choice(self) -> bool:
        """Whether annotators choose one of an item's candidates, and are compared by item."""
        return self.kind == "preference"

    @property
    def highest(self) -> float:
        """The highest value in the order of the answers, which those that say that nothing can
        be said come after."""
        if self.level == self.Level.ORDINAL and self.categories:
            return float(first_that_says_nothing(self.categories) - 1)
        return self.scale_max

    def validation_error(self, value: float) -> CodedText | None:
        if not self.scale_min <= value <= self.scale_max:
            return CodedText(
                f"value {value:g} is outside the scale of '{self.name}', "
                f"{self.scale_min:g} to {self.scale_max:g}.",
                "off_scale",
            )
        if self.level == self.Level.RATIO and value < 0:
            return CodedText(
                f"value {value:g} is below zero, where the ratio scale of '{self.name}' begins.",
                "below_zero",
            )
        if self.categories and value != int(value):
            return CodedText(
                f"value {value:g} is not one of the categories of '{self.name}', "
                f"0 to {len(self.categories) - 1}.",
                "between_categories",
            )
        return None


class Picture(BaseRow):
    """A picture kept by its content, so that a page made of it never changes."""

    sha256 = models.CharField(max_length=64, unique=True)
    media_type = models.CharField(max_length=32)
    content = ContentField()


class ItemQuerySet(models.QuerySet["Item"]):
    def counted(self) -> ItemQuerySet:
        return self.annotate(
            n_candidates=counted(_rows("annotation.Candidate"), "item"),
            n_submissions=counted(_rows("annotation.Submission"), "item"),
        )

    def preceding(self, item: Item) -> Item | None:
        earlier = Q(position=item.position, pk__lt=item.pk) | Q(position__lt=item.position)
        return self.filter(earlier).order_by("-position", "-pk").first()

    def following(self, item: Item) -> Item | None:
        later = Q(position=item.position, pk__gt=item.pk) | Q(position__gt=item.position)
        return self.filter(later).order_by("position", "pk").first()


class SourceItem(BaseRow):
    """An item as it was imported, while pairs of its candidates are the study's items."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="source_items")
    key = models.CharField(max_length=200)
    condition = models.CharField(max_length=64, blank=True)
    context = models.TextField(blank=True)
    reference = models.TextField(blank=True)
    picture = models.ForeignKey(Picture, on_delete=models.PROTECT, null=True, blank=True)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["study", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "key"], name="source_item_key_once_a_study")
        ]


class Item(models.Model):
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="items")
    source = models.ForeignKey(
        SourceItem,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="pairs",
        help_text="Of a pair of candidates, the imported item whose they are.",
    )
    key = models.CharField(max_length=200)
    condition = models.CharField(max_length=64, blank=True)
    context = models.TextField(blank=True, help_text="The dialogue, or the target's title.")
    reference = models.TextField(blank=True)
    picture = models.ForeignKey(Picture, on_delete=models.PROTECT, null=True, blank=True)
    position = models.PositiveIntegerField(default=0)

    objects = ItemQuerySet.as_manager()

    class Meta:
        ordering = ["study", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "key"], name="item_key_once_a_study")
        ]
        # The order in which pages list items and exports read them.
        indexes = [models.Index(fields=["study", "position", "id"], name="item_in_its_place")]

    def __str__(self) -> str:
        return self.key


def new_blind_key() -> str:
    return new_blind_keys(1)[0]


def new_blind_keys(n: int) -> list[str]:
    """Many at once take a tenth of the time."""
    digits, length = secrets.token_hex(n * BLIND_KEY_LENGTH // 2), BLIND_KEY_LENGTH
    return [digits[start : start + length] for start in range(0, n * length, length)]


class Candidate(models.Model):
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="candidates")
    key = models.CharField(max_length=200)
    blind_key = models.CharField(max_length=BLIND_KEY_LENGTH, default=new_blind_key, editable=False)
    system = models.CharField(max_length=100, blank=True)
    text = models.TextField(blank=True, help_text="The response, or the product's title.")
    picture = models.ForeignKey(Picture, on_delete=models.PROTECT, null=True, blank=True)
    position = models.PositiveSmallIntegerField(default=0)
    extra = models.TextField(
        blank=True,
        help_text="Extra columns of its row, as a JSON object; annotators do not see them.",
    )

    class Meta:
        ordering = ["item", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["item", "key"], name="candidate_key_once_an_item"),
            models.UniqueConstraint(fields=["item", "blind_key"], name="blind_key_once_an_item"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def blind_name(self) -> str:
        """What it is called where somebody decides about it: a product by its key, a system's
        response, whose key often is the system, by a part of its blind key."""
        if not self.system:
            return self.key
        return gettext("response {key}").format(key=self.blind_key[:4])

    def name_for(self, permissions: Container[str]) -> str:
        return self.key if Permission.VIEW_SYSTEMS in permissions else self.blind_name

    def system_for(self, permissions: Container[str]) -> str | None:
        return self.system if Permission.VIEW_SYSTEMS in permissions else None


class SourceCandidate(BaseRow):
    item = models.ForeignKey(SourceItem, on_delete=models.CASCADE, related_name="candidates")
    key = models.CharField(max_length=200)
    blind_key = models.CharField(max_length=BLIND_KEY_LENGTH, editable=False)
    system = models.CharField(max_length=100, blank=True)
    text = models.TextField(blank=True)
    picture = models.ForeignKey(Picture, on_delete=models.PROTECT, null=True, blank=True)
    position = models.PositiveSmallIntegerField(default=0)
    extra = models.TextField(blank=True)

    class Meta:
        ordering = ["item", "position", "pk"]


def counted(rows: QuerySet[Any], path: str, number: Aggregate | None = None) -> Coalesce:
    """How many rows lead to the object of the outer query, or another number of theirs."""
    of_one = rows.filter(**{path: OuterRef("pk")}).order_by().values(path)
    # Of rows and not of their keys: an index that leads from one to the other is enough.
    per_one = of_one.annotate(n=number or Count("*")).values("n")
    return Coalesce(Subquery(per_one, output_field=IntegerField()), 0)


CANNOT_JUDGE = re.compile(
    r"(i )?(can['’]?t|cannot|can not|unable to) (judge|tell|say|decide|rate)\b.*"
    r"|(i )?(don['’]?t|do not) know\b.*|unrateable|unjudgeable",
    re.IGNORECASE,
)


def says_nothing(category: str) -> bool:
    return CANNOT_JUDGE.fullmatch(category.strip()) is not None


def first_that_says_nothing(categories: Sequence[str]) -> int:
    return next((n for n, name in enumerate(categories) if says_nothing(name)), len(categories))


if TYPE_CHECKING:

    class Sizes(TypedDict):
        n_items: int
        n_submissions: int
        n_judgments: int

    CountedStudy: TypeAlias = WithAnnotations[Study, Sizes]
else:
    CountedStudy = Study


RowOfStudy = TypeVar("RowOfStudy", bound=models.Model)


class StudyRowQuerySet(models.QuerySet[RowOfStudy]):
    study_field = "study"

    def of(self, study: Study) -> Self:
        return self.filter(**{self.study_field: study.pk})


class ProtocolQuerySet(StudyRowQuerySet["Protocol"]):
    def drafts(self) -> ProtocolQuerySet:
        return self.filter(frozen_at=None)

    def frozen(self) -> ProtocolQuerySet:
        return self.exclude(frozen_at=None)

    def update(self, **values: Any) -> int:
        frozen = self.frozen().order_by().first()
        if frozen is not None:
            raise ProtocolFrozen(frozen.study.slug, frozen.number)
        return super().update(**values)


class Protocol(models.Model):
    """One version. A study has one draft at most; what is frozen never changes."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="protocols")
    number = models.PositiveSmallIntegerField()
    document = models.JSONField(help_text="As `docs/protocol.schema.json` says.")
    fingerprint = models.CharField(
        max_length=64, blank=True, help_text="Of the document; empty while it is a draft."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    saved_at = models.DateTimeField(auto_now=True)
    writer = models.CharField(
        max_length=32, blank=True, help_text="The open page that saved it last, by a random name."
    )
    frozen_at = models.DateTimeField(null=True, blank=True)
    frozen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = ProtocolQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="protocol_number_is_unique"),
            models.UniqueConstraint(
                fields=["study"], condition=Q(frozen_at=None), name="one_draft_of_a_protocol"
            ),
            models.CheckConstraint(condition=Q(number__gte=1), name="protocols_count_from_one"),
            models.CheckConstraint(
                condition=Q(frozen_at=None, fingerprint="")
                | Q(frozen_at__isnull=False) & ~Q(fingerprint=""),
                name="frozen_protocols_have_fingerprints",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.study}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """The one guard that cannot be elsewhere: a form, a shell or a later writer comes here."""
        if self.pk and Protocol.objects.frozen().filter(pk=self.pk).exists():
            raise ProtocolFrozen(self.study.slug, self.number)
        super().save(*args, **kwargs)
