from datetime import datetime

from django import template
from django.utils.dateformat import format as formatted
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def timestamp(moment: datetime | None, layout: str = "Y-m-d H:i") -> SafeString | str:
    """A moment as a `time` element, in UTC; empty where there is none."""
    if moment is None:
        return ""
    minute = f"{formatted(moment, layout)} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', formatted(moment, "c"), minute, minute
    )
