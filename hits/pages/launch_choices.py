"""How much of a study a launch is of: a pilot or sample, all that is left, a list, each with its
price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hits.costs import Estimate, price_launch
from hits.pages.launch_form import (
    LISTED,
    SAMPLE,
    THE_REST,
    UNSURE,
)

if TYPE_CHECKING:
    from hits.pages.launch_view import LaunchView


@dataclass(frozen=True)
class Choice:
    """A way to say how much, with its price."""

    value: str
    label: str
    n_items: int
    cost: Estimate | None


def choices_of(view: LaunchView) -> list[Choice]:
    """Each way to say how much, as far as the form says it."""
    data = view.form.cleaned_data if view.draft else {}
    n_sample = min(data.get("n_items", 0), view.n_left)
    numbers = {SAMPLE: n_sample}
    if view.form.judges and view.form.questions:
        numbers[UNSURE] = min(data.get("n_unsure") or 0, view.n_left)
    numbers |= {THE_REST: view.n_left, LISTED: len(data.get("keys") or [])}
    is_first = not view.batches
    labels = {
        SAMPLE: _("A pilot, drawn at random") if is_first else _("A sample, drawn at random"),
        UNSURE: _("A sample, where the judge is least sure"),
        THE_REST: _rest_label(view),
        LISTED: _("A choice of items"),
    }
    return [Choice(value, labels[value], n, _price(view, n)) for value, n in numbers.items()]


def later_choice(view: LaunchView) -> Choice | None:
    """What is left for later, where not all is launched now."""
    if view.choice is None or not 0 < view.n_left - view.choice.n_items < view.n_left:
        return None
    n = view.n_left - view.choice.n_items
    label = ngettext("The other item, later", "The other %(n)s items, later", n)
    return Choice("", label % {"n": f"{n:,}"}, n, _price(view, n))


def _rest_label(view: LaunchView) -> str:
    n = view.n_left
    if view.draft is None:
        return _("All items without a HIT")
    if not n:
        return _("No other item is left")
    if view.next_part(view.form.data) > 1:
        return ngettext("The other item", "The other %(n)s items", n) % {"n": f"{n:,}"}
    return ngettext("The one item", "All %(n)s items", n) % {"n": f"{n:,}"}


def _price(view: LaunchView, n_items: int) -> Estimate | None:
    return price_launch(view.draft, n_items=n_items) if view.draft and n_items else None
