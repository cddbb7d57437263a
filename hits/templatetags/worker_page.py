from typing import Any

from django import template
from django.template import Context

from hits.page_texts import page_text

register = template.Library()


@register.simple_tag(takes_context=True)
def say(context: Context, text: str, **values: Any) -> str:
    """A text of the worker's page in the language of its study, with its {values}."""
    said = page_text(text, context["language"])
    return said.format(**values) if values else said
