import math
from datetime import datetime

from django import template
from django.utils.dateformat import format as formatted
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

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


@register.filter
def time_left(deadline: datetime, now: datetime) -> str:
    """As `static/marketplace/time_left.js` writes it, so that the page does not move when that
    starts."""
    seconds = max(0, math.ceil((deadline - now).total_seconds()))
    h, m, s = seconds // 3600, seconds % 3600 // 60, seconds % 60
    if not seconds:
        return _("none, the time is over")
    text = _("{h} h {m} min") if h else _("{m} min {s} s") if m else _("{s} s")
    return text.format(h=h, m=m, s=s)
