"""Who may stop a job and resume it, who may read what came of it, and the page that shows it; apps
register this for each kind of their jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.roles import Permission
from console.registrations import load_registrations
from work.models import Job


def _nothing(job: Job) -> Collection[Permission]:
    return ()


@dataclass(frozen=True)
class JobAccess:
    """The page of a kind of jobs, and the permissions that control them, that it takes beside to
    resume one, and to read its message."""

    page: str = ""
    control: Permission = Permission.EDIT
    to_resume: Callable[[Job], Collection[Permission]] = _nothing
    to_read: Callable[[Job], Collection[Permission]] = _nothing


_by_kind: dict[str, JobAccess] = {}


def register_job_access(kind: str, access: JobAccess) -> None:
    _by_kind[kind] = access


def job_access(kind: str) -> JobAccess:
    """The access to a kind of jobs; that of a kind without page for kinds nobody registered."""
    load_registrations()
    return _by_kind.get(kind, JobAccess())


def needed_to_control(job: Job, *, resumes: bool) -> list[Permission]:
    """What somebody must be allowed to stop a job, or to resume it: who may request one like it."""
    access = job_access(job.kind)
    return [access.control, *(access.to_resume(job) if resumes else ())]


def message_for(job: Job, permissions: Container[str]) -> str:
    """The message, or that it is for others."""
    if not job.message or all(each in permissions for each in job_access(job.kind).to_read(job)):
        return job.message
    return _("What came of it is for those who may see costs and workers.")
