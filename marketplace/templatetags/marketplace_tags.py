import math
from datetime import datetime

from django import template
from django.utils.dateformat import format as formatted
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from marketplace.models import WorkerAccount, WorkerMessage

register = template.Library()

UNITS = (
    (gettext_lazy("%(n)d d"), 86_400),
    (gettext_lazy("%(n)d h"), 3_600),
    (gettext_lazy("%(n)d min"), 60),
    (gettext_lazy("%(n)d s"), 1),
)


@register.filter
def duration(seconds: int) -> str:
    """The two largest units of a duration: 160 is "2 min 40 s"."""
    parts = []
    for text, size in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(text % {"n": count})
    return " ".join(parts[:2]) or UNITS[-1][0] % {"n": 0}


@register.simple_tag
def unread(worker: WorkerAccount) -> int:
    return WorkerMessage.objects.filter(worker=worker, read_at=None).count()


@register.filter
def timestamp(time: datetime | None, layout: str = "Y-m-d H:i") -> SafeString | str:
    if time is None:
        return ""
    minute = f"{formatted(time, layout)} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', formatted(time, "c"), minute, minute
    )


@register.filter
def time_left(deadline: datetime, now: datetime) -> str:
    # As `static/marketplace/time_left.js` writes it, so the page does not move when that starts.
    seconds = max(0, math.ceil((deadline - now).total_seconds()))
    h, m, s = seconds // 3600, seconds % 3600 // 60, seconds % 60
    if not seconds:
        return _("none")
    return (_("{h} h {m} min") if h else _("{m} min {s} s") if m else _("{s} s")).format(
        h=h, m=m, s=s
    )
