"""Which quality checks stand on the pages of a batch, drawn when it is planned."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from annotation.check_placement import place_checks
from annotation.models import Item, PlacedCheck
from hits.exceptions import BatchUnfit, QuestionTooLarge
from hits.models import Batch, Hit
from hits.questions import html_question


def checks_on(hit: Hit) -> list[PlacedCheck]:
    """Those on the page of a HIT: of its item, under its batch's version of the protocol."""
    rows = hit.item.placed_checks.all()
    return [row for row in rows if row.protocol_id == hit.batch.protocol_id]


def place_batch_checks(batch: Batch, new_items: Sequence[int]) -> None:
    """Draw the checks of a batch's new pages, and see that these can be published with them.

    An item that had a HIT under the same version keeps what its page bears.
    """
    if batch.protocol is None or not batch.document.checks:
        return
    pages = Hit.objects.filter(batch__protocol=batch.protocol).order_by().values("item")
    earlier = set(pages.exclude(batch=batch).values_list("item", flat=True))
    fresh = [pk for pk in new_items if pk not in earlier]
    n_items = Item.objects.filter(pk__in=pages).count()
    placed = place_checks(protocol=batch.protocol, new_items=fresh, n_items=n_items)
    for item_id in sorted({row.item_id for row in placed}):
        item = Item.objects.select_related("study", "picture").get(pk=item_id)
        try:
            html_question(item, batch.document, [row for row in placed if row.item_id == item_id])
        except QuestionTooLarge as error:
            raise BatchUnfit(_("With its quality checks: {error}").format(error=error)) from None
