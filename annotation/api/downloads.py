"""The files of a study: a list with links, and each of them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.pages.downloads import (
    file_names_for,
    streamed,
)
from annotation.pages.job_progress import job_of
from annotation.study_files import study_download, study_downloads
from annotation.study_results import is_stored
from console.api.endpoint import Endpoint
from console.api.errors import ComputingFailed
from console.api.operations import PENDING, READ_ERRORS, being_computed, reads
from work.models import Job

CONTENT_TYPES = {file.content_type.partition(";")[0] for file in study_downloads().values()}
FILES: dict[Any, Any] = {(200, name): OpenApiTypes.BINARY for name in sorted(CONTENT_TYPES)}
# What is JSON is described as JSON.
FILES[200, "application/json"] = OpenApiTypes.ANY


class FileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    about = serializers.CharField()
    content_type = serializers.CharField()
    is_computed = serializers.BooleanField(help_text="Whether it is there at once.")
    url = serializers.URLField()


class Files(Endpoint):
    @reads("list_files", FileSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The files one may take away, each with its address.

        Access: those who may export; files with workers' words and ids for those who may view them.
        """
        study = self.study(slug, Permission.EXPORT)
        rows = [
            {
                "name": name,
                "about": str(file.about),
                "content_type": file.content_type,
                "is_computed": not file.result or is_stored(study, file.result),
                "url": request.build_absolute_uri(reverse("console:api:file", args=[slug, name])),
            }
            for name in file_names_for(self.plain_request, study)
            for file in [study_download(name)]
        ]
        return Response(FileSerializer(rows, many=True).data)


class OneFile(Endpoint):
    @extend_schema(
        operation_id="get_file",
        parameters=[OpenApiParameter("license", str, description="Of dataset.zip, for its card.")],
        responses=FILES | PENDING | READ_ERRORS,
    )
    def get(self, request: Request, slug: str, name: str) -> HttpResponseBase:
        """A file, streamed; the audit log says who took it away.

        Access: those who may export; files with workers' words and ids for those who may view them.
        """
        study = self.study(slug, Permission.EXPORT)
        if name not in file_names_for(self.plain_request, study):
            raise Http404(f"There is no file {name}.")
        result = study_download(name).result
        if result and (job := job_of(self.plain_request, study, result)):
            if job.state == Job.State.FAILED:
                raise ComputingFailed(job.message)
            return being_computed()
        return streamed(self.plain_request, study, name)
