"""A job on a page, as far as whoever looks at it may read and control it.

`may` names what is allowed on the page.
"""

from collections.abc import Container

from django import template

from console.registrations import message_for, needed_to_control
from work.models import Job

register = template.Library()
register.filter(message_for)


@register.filter
def may_stop(job: Job, may: Container[str]) -> bool:
    return all(one in may for one in needed_to_control(job, resumes=False))


@register.filter
def may_resume(job: Job, may: Container[str]) -> bool:
    return all(one in may for one in needed_to_control(job, resumes=True))
