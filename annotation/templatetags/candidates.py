from collections.abc import Container

from django import template

from annotation.models import Candidate

register = template.Library()


@register.filter
def name_for(candidate: Candidate, permissions: Container[str]) -> str:
    return candidate.name_for(permissions)
