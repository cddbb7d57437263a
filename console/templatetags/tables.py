"""Heads of tables that sort by a link, so that the order is in the address."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
ORDERS = {"ascending": "▲", "descending": "▼"}


@register.simple_tag(takes_context=True)
def sortable(context: dict[str, Any], name: str, title: str, kind: str = "") -> SafeString:
    by = context["sort"]
    order = {name: "ascending", f"-{name}": "descending"}.get(by, "none")
    # Numbers are asked for largest first, words from A.
    first, second = (f"-{name}", name) if kind == "number" else (name, f"-{name}")
    query = context["request"].GET.copy()
    for name in ("page", "before", "after"):
        query.pop(name, None)
    query["sort"] = second if by == first else first
    return format_html(
        '<th scope="col" class="{}" aria-sort="{}"><a href="?{}">{}{}</a></th>',
        kind,
        order,
        query.urlencode(),
        title,
        format_html(' <span aria-hidden="true">{}</span>', ORDERS[order])
        if order in ORDERS
        else "",
    )
