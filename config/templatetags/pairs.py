from collections.abc import ItemsView, Mapping
from typing import Any

from django import template

register = template.Library()


@register.filter
def pairs(dictionary: Mapping[Any, Any] | None) -> ItemsView[Any, Any]:
    """The dictionary's keys and values; of an undefined variable, none.

    A template looks up `dictionary.items` as a key first: with a key "items" it gets that value.
    """
    return (dictionary or {}).items()
