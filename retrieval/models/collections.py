"""Test collections: whose they are, and the studies whose judgments make their qrels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.contenttypes.fields import GenericRelation
from django.db import models
from django.db.models import Count, OuterRef, Q, Subquery

from accounts.models import Membership, Team
from accounts.roles import SYSTEM_VIEWERS, Role
from annotation.models import Study
from results.models import Result

if TYPE_CHECKING:
    from accounts.models import User


class CollectionQuerySet(models.QuerySet["Collection"]):
    def visible_to(self, user: User) -> CollectionQuerySet:
        """Those of the user's teams in which their role may see collections."""
        if user.is_superuser:
            return self
        teams = Membership.objects.filter(user=user.pk, role__in=SYSTEM_VIEWERS).values("team")
        return self.filter(team__in=teams)

    def with_role_of(self, user: User) -> CollectionQuerySet:
        """Each with the user's role in its team, for `Collection.role_of`."""
        of_user = Membership.objects.filter(team=OuterRef("team"), user=user.pk)
        return self.annotate(user_role=Subquery(of_user.values("role")[:1]))

    def with_n_files(self) -> CollectionQuerySet:
        """Each with how many runs and qrels it has."""
        return self.annotate(
            n_runs=Count("files", filter=Q(files__kind="run")),
            n_qrels=Count("files", filter=Q(files__kind__in=("qrels", "assessors"))),
        )

    def called(self, words: str) -> CollectionQuerySet:
        """Those with these words in their name or short name."""
        return self.filter(Q(name__icontains=words) | Q(slug__icontains=words))


class Collection(models.Model):
    """Topics, documents' relevance grades and runs that belong together, in a team."""

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

    def __str__(self) -> str:
        return self.name

    def role_of(self, user: User) -> Role | None:
        """The user's role, of a collection that comes from `with_role_of`."""
        if user.is_superuser:
            return Role.OWNER
        role: str | None = self.user_role  # type: ignore[attr-defined]
        return Role(role) if role else None


def result_collection(result: Result) -> Collection:
    """The collection that a result is about."""
    assert isinstance(result.subject, Collection)
    return result.subject
