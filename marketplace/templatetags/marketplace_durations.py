from django import template

register = template.Library()

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@register.filter
def duration(seconds: int) -> str:
    """The two largest units of a duration: 160 is "2 min 40 s"."""
    parts = []
    for unit, size in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
