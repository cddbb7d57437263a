"""How numbers are written for people: two decimals, with their interval."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

from django import template
from django.utils.translation import gettext as _

from console.glossary import LEVEL_TITLES, code_name

register = template.Library()

DASH = "–"
# A smaller p-value is written as less than this.
LEAST_P = 0.001


@register.filter
def coefficient(value: float | None) -> str:
    if value is None or math.isnan(value):
        return DASH
    text = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
    return "0.00" if text == "\N{MINUS SIGN}0.00" else text


@register.filter
def minus(text: object) -> str:
    return str(text).replace("-", "\N{MINUS SIGN}")


@register.filter
def change(value: float | None, decimals: int = 3) -> str:
    """`+0.012`: a difference, always with its sign; undefined is a dash."""
    if value is None or math.isnan(value):
        return DASH
    return f"{value:+.{decimals}f}".replace("-", "\N{MINUS SIGN}")


@register.filter
def interval(estimate: object) -> str:
    """`[0.29, 0.39]` of anything with ci_low and ci_high; empty where there is none."""
    low, high = (_field(estimate, name) for name in ("ci_low", "ci_high"))
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{coefficient(low)}, {coefficient(high)}]"


def _field(estimate: object, name: str) -> float | None:
    value = estimate.get(name) if isinstance(estimate, Mapping) else getattr(estimate, name, None)
    return cast("float | None", value)


@register.filter
def usd(amount: float | Decimal | None) -> str:
    if amount is None:
        return DASH
    sign = "\N{MINUS SIGN}" if amount < 0 else ""
    return f"{sign}${abs(amount):,.2f}"


@register.filter
def percent(share: float | None) -> str:
    return DASH if share is None or math.isnan(share) else f"{100 * share:.0f} %"


@register.filter
def duration(seconds: float | None) -> str:
    if seconds is None or math.isnan(seconds):
        return DASH
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": minutes}
    if minutes:
        return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}
    return _("%(seconds)d s") % {"seconds": rest}


@register.filter
def words(code: object) -> str:
    return code_name(code)


@register.filter
def level_title(level: str) -> str:
    """The title of a level of correlation: `Item level`."""
    return str(LEVEL_TITLES.get(level, level))


def p_text(p: float | None) -> str:
    """`= 0.012`, or `< 0.001`."""
    if p is None:
        return "–"
    return f"= {p:.3f}" if p >= LEAST_P else f"< {LEAST_P}"
