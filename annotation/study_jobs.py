from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser

from annotation.models import Study
from work.execution import RunningJob
from work.models import Job, JobQuerySet
from work.registry import job_kind
from work.tasks import request_job

COLLECT, SCORE, RESULT, LABEL = "collect", "score", "result", "label"
PUBLISH, CONNECT, CHECK_LAUNCH = "publish", "connect", "check_launch"
# Collecting by itself, beside the one that a person asks for.
COLLECT_NEW = "collect_new"
REVIEW = "review"
PLAN_SCORE = "plan_score"
MEASURE = "measure"
ANSWER_BY_CROWD = "answer_by_crowd"
RECRUIT, CONNECT_RECRUITER = "recruit_participants", "connect_to_recruiter"


def jobs_of(study: Study) -> JobQuerySet:
    return Job.objects.about(subject_of(study))


def request_study_job(
    *,
    study: Study,
    kind: str,
    names: Sequence[str] = (),
    arguments: Mapping[str, Any] | None = None,
    requested_by: AbstractBaseUser | None = None,
    basis: str = "",
) -> Job:
    named = {"study": study.pk, "names": list(names)}
    return request_job(
        kind=kind,
        subject=subject_of(study),
        arguments=dict(arguments or {}) | named,
        title=f"{job_kind(kind).label} {', '.join(names)}".strip(),
        basis=basis,
        requested_by=requested_by,
    )


def study_of(running: RunningJob) -> Study:
    return Study.objects.get(pk=running.arguments["study"])


def subject_of(study: Study) -> str:
    return f"study:{study.pk}"
