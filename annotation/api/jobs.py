"""Background jobs of a study: what a write that takes long answers with, how to follow it, and the
files that a study offers.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.models import Study
from annotation.study_jobs import jobs_of
from console.api.endpoint import Endpoint, Filters, address_of
from console.api.job_records import JobSerializer, job_record
from console.api.operations import lists, page, reads, writes
from console.job_permissions import needed_to_control
from work.models import Job
from work.request import resume_job, stop_job


class JobFilters(Filters):
    state = serializers.ChoiceField(choices=Job.State.choices, required=False)
    kind = serializers.CharField(required=False, max_length=40)


def accepted(request: Request, study: Study, job: Job) -> Response:
    """The answer of a write that goes on in the background: 202, the job, and its address."""
    headers = {"Location": address_of(request, "job", study.slug, job.pk), "Retry-After": "2"}
    return Response(job_record(request, job), status=HTTPStatus.ACCEPTED, headers=headers)


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
        job = get_object_or_404(jobs_of(self.study(slug)), pk=job_id)
        return Response(job_record(request, job))


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
