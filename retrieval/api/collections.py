from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.endpoint import Endpoint, Filters
from console.api.job_records import (
    CountsSerializer,
    JobSerializer,
    job_record,
)
from console.api.operations import lists, page, reads
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile
from work.models import Job


class CollectionSerializer(serializers.ModelSerializer[Collection]):
    """A test collection of a team."""

    team = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    n_runs = serializers.IntegerField(read_only=True)
    n_qrels = serializers.IntegerField(read_only=True)

    class Meta:
        model = Collection
        fields = ["slug", "name", "team", "created_at", "n_runs", "n_qrels"]


class CollectionFileSerializer(serializers.ModelSerializer[CollectionFile]):
    """A file: what it is called in results, what was read of it, and how much is wrong with it."""

    study = serializers.SlugRelatedField[Any](
        slug_field="slug", read_only=True, allow_null=True, help_text="Whose judgments it is."
    )
    is_usable = serializers.BooleanField(
        help_text="Whether it was read without a fault, and is confirmed."
    )
    reading = serializers.SerializerMethodField(help_text="Of runs and qrels, once they are read.")

    class Meta:
        model = CollectionFile
        fields = [
            *("id", "kind", "name", "family", "made_by", "assessor", "round", "rule", "study"),
            *("file_name", "n_bytes", "sha256", "n_lines", "n_topics", "n_documents"),
            *("n_relevant", "n_unjudged", "n_faults", "is_confirmed", "is_usable", "reading"),
            "created_at",
        ]

    @extend_schema_field(CountsSerializer(allow_null=True))
    def get_reading(self, file: CollectionFile) -> dict[str, Any] | None:
        return file.reading or None


class CollectionFilters(Filters):
    q = serializers.CharField(required=False, help_text="Words in its name or short name.")
    team = serializers.SlugField(required=False, help_text="A team's short name.")


class FileFilters(Filters):
    kind = serializers.ChoiceField(choices=CollectionFile.Kind.choices, required=False)


class Collections(Endpoint):
    @lists("list_collections", CollectionSerializer, filters=CollectionFilters)
    def get(self, request: Request) -> Response:
        """The test collections of one's teams, by name.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        filters = self.filters(CollectionFilters)
        rows = Collection.objects.visible_to(self.person).with_n_files().select_related("team")
        if words := filters.get("q"):
            rows = rows.called(words)
        if team := filters.get("team"):
            rows = rows.filter(team__slug=team)
        return page(request, rows.order_by("name", "pk"), CollectionSerializer)


class OneCollection(Endpoint):
    @reads("get_collection", CollectionSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """A test collection.

        Access: members of the team, but for who adjudicates blind.
        """
        collection = self.collection(slug)
        row = Collection.objects.with_n_files().select_related("team").get(pk=collection.pk)
        return Response(CollectionSerializer(row).data)


class CollectionFiles(Endpoint):
    @lists("list_collection_files", CollectionFileSerializer, filters=FileFilters)
    def get(self, request: Request, slug: str) -> Response:
        """Runs, qrels, embeddings and catalogues of a collection.

        Access: members of the team, but for who adjudicates blind.
        """
        rows = self.collection(slug).files.exclude(kind=CollectionFile.Kind.AUDITED)
        return page(
            request,
            rows.filter(**self.filters(FileFilters))
            .select_related("study")
            .defer("faults")
            .order_by("kind", "name", "pk"),
            CollectionFileSerializer,
        )


class CollectionJobs(Endpoint):
    @lists("list_collection_jobs", JobSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The background jobs of a collection, newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        return page(request, Job.objects.about(subject_of(self.collection(slug))), JobSerializer)


class OneCollectionJob(Endpoint):
    @reads("get_collection_job", JobSerializer)
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """A background job of a collection, and how far it is.

        Access: members of the team, but for who adjudicates blind.
        """
        jobs = Job.objects.about(subject_of(self.collection(slug)))
        return Response(job_record(request, get_object_or_404(jobs, pk=job_id)))
