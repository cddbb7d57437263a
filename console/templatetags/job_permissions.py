"""A job on a page, as far as whoever looks at it may read and control it.

`may` names what is allowed on the page.
"""

from collections.abc import Container

from django import template

from work.models import Job

register = template.Library()


@register.filter
def message_for(job: Job, may: Container[str]) -> str:
    from console import registrations

    return registrations.message_for(job, may)


@register.filter
def may_stop(job: Job, may: Container[str]) -> bool:
    return _may_control(job, may, resumes=False)


@register.filter
def may_resume(job: Job, may: Container[str]) -> bool:
    return _may_control(job, may, resumes=True)


def _may_control(job: Job, may: Container[str], *, resumes: bool) -> bool:
    # Imported here: it imports the apps whose jobs it knows, which pages without a job do not need.
    from console.registrations import needed_to_control

    return all(one in may for one in needed_to_control(job, resumes=resumes))
