"""A job on a page, as far as whoever looks at it may read and control it.

`may` names what is allowed on the page.
"""

from collections.abc import Container

from django import template

from console import job_permissions
from work.models import Job

register = template.Library()


@register.filter
def message_for(job: Job, may: Container[str]) -> str:
    return job_permissions.message_for(job, may)


@register.filter
def may_stop(job: Job, may: Container[str]) -> bool:
    return all(one in may for one in job_permissions.needed_to_control(job, resumes=False))


@register.filter
def may_resume(job: Job, may: Container[str]) -> bool:
    return all(one in may for one in job_permissions.needed_to_control(job, resumes=True))
