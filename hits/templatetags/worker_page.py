from typing import Any

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from hits.page_rendering import field_html
from hits.page_texts import page_text

register = template.Library()


@register.simple_tag(takes_context=True)
def say(context: Context, text: str, **values: Any) -> str:
    translation = page_text(text, context["language"])
    return translation.format(**values) if values else translation


@register.simple_tag(takes_context=True)
def field(context: Context, question: dict[str, Any], candidate: int | None = None) -> SafeString:
    return field_html(
        question,
        question["id"] if candidate is None else f"{candidate}-{question['id']}",
        context["language"],
        context["candidates"],
        are_products=context["are_products"],
    )
