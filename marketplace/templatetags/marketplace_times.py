from datetime import datetime

from django import template
from django.utils.dateformat import format as formatted
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def timestamp(time: datetime | None, layout: str = "Y-m-d H:i") -> SafeString | str:
    """A time as a `time` element, in UTC; empty where there is none."""
    if time is None:
        return ""
    minute = f"{formatted(time, layout)} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', formatted(time, "c"), minute, minute
    )
