"""Background jobs of a study: what a write that takes long answers with, how to follow it, and the
files that a study offers.
"""

from http import HTTPStatus
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.downloads import file_names_for, job_of, streamed
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import jobs_of
from annotation.study_files import study_download, study_downloads
from console.api.endpoint import Endpoint, Filters, address_of
from console.api.errors import ComputingFailed
from console.api.job_records import JobSerializer, job_record
from console.api.operations import PENDING, READ_ERRORS, being_computed, lists, page, reads, writes
from console.registrations import needed_to_control
from error_codes import require
from work.models import Job
from work.tasks import resume_job, stop_job


class JobFilters(Filters):
    state = serializers.ChoiceField(choices=Job.State.choices, required=False)
    kind = serializers.CharField(required=False, max_length=40)


def accepted(request: Request, study: Study, job: Job) -> Response:
    """The answer of a write that goes on in the background: 202, the job, and its address."""
    return Response(
        job_record(request, job),
        status=HTTPStatus.ACCEPTED,
        headers={"Location": address_of(request, "job", study.slug, job.pk), "Retry-After": "2"},
    )


class Jobs(Endpoint):
    @lists("list_jobs", JobSerializer, filters=JobFilters)
    def get(self, request: Request, slug: str) -> Response:
        """The jobs of a study, newest first; those that ended are forgotten after some weeks.

        Access: whoever has a role in the study.
        """
        filters: dict[str, Any] = self.filters(JobFilters)
        return page(request, jobs_of(self.study(slug)).filter(**filters), JobSerializer)


class OneJob(Endpoint):
    @reads("get_job", JobSerializer)
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """A job, and how far it is.

        Access: whoever has a role in the study.
        """
        return Response(
            job_record(request, get_object_or_404(jobs_of(self.study(slug)), pk=job_id))
        )


def _controlled(endpoint: Endpoint, slug: str, job_id: int, *, resumes: bool) -> tuple[Study, Job]:
    study = endpoint.study(slug)
    job = get_object_or_404(jobs_of(study), pk=job_id)
    for permission in needed_to_control(job, resumes=resumes):
        study = endpoint.study(slug, permission)
    return study, job


class Stop(Endpoint):
    @writes("stop_job", None, JobSerializer)
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """End a job at its next step.

        Access: those who may request such a job.
        """
        _study, job = _controlled(self, slug, job_id, resumes=False)
        stop_job(job=job)
        job.refresh_from_db()
        return Response(job_record(request, job))


class Resume(Endpoint):
    @writes("resume_job", None, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Go on with a job that failed or was stopped.

        Access: those who may request such a job; one that asks a judge, those who may spend.
        """
        study, job = _controlled(self, slug, job_id, resumes=True)
        return accepted(request, study, resume_job(job=job))


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
                "is_computed": not file.result or find_study_kind(file.result).is_stored(study),
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
        require(
            name in file_names_for(self.plain_request, study), Http404(f"There is no file {name}.")
        )
        result = study_download(name).result
        if result and (job := job_of(self.plain_request, study, result)):
            require(job.state != Job.State.FAILED, ComputingFailed(job.message))
            return being_computed()
        return streamed(self.plain_request, study, name)
