"""A job's message, as far as whoever looks at the page may read it."""

from collections.abc import Container

from django import template

from console import job_messages
from work.models import Job

register = template.Library()


@register.filter
def message_for(job: Job, may: Container[str]) -> str:
    """`may` names what is allowed on the page."""
    return job_messages.message_for(job, may)
