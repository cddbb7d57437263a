from django import template
from django.utils.translation import gettext_lazy

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
