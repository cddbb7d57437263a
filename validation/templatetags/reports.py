"""Pictures and data of a report, for its templates."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from presentation import html
from presentation.documents import Figure, Table

register = template.Library()


@register.filter
def inline_svg(figure: Figure) -> SafeString:
    """The picture; what it writes is escaped by the engine that draws it."""
    return mark_safe(html.inline_svg(figure))


@register.filter
def data_address(figure: Figure) -> str:
    """The address of a figure's data, which holds them."""
    return html.data_address(figure)


@register.filter
def table_address(table: Table) -> str:
    """The address of a long table's file, which holds it."""
    return html.table_address(table)
