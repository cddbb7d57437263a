"""The press that launches: what it must confirm, and the batch that comes of it, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from annotation.exceptions import AnnotationError
from hits.exceptions import HitsError
from hits.launch_plans import plan_batch
from hits.models import Batch
from hits.preflight import Finding, fault
from hits.publications import request_publication

if TYPE_CHECKING:
    from console.launch_view import LaunchView


def launch(view: LaunchView, *, total: str, amount: str) -> Batch | None:
    """The batch of what the form says, which is published in the background; None, with the faults
    among the view's findings, where something holds it.

    `total` is the price that was displayed, `amount` what was typed to confirm it. Whoever launches
    the same part of the round again gets the batch of the first time.
    """
    if not _is_launched(view):
        view.extra += _confirmation_faults(view, total, amount)
        if view.is_held:
            return None
    try:
        batch = _plan(view)
    except (HitsError, AnnotationError) as error:
        view.extra.append(fault(str(error)))
        return None
    request_publication(batch=batch, requested_by=view.person)
    return batch


def _is_launched(view: LaunchView) -> bool:
    """Whether this very part of the round is planned: the press before this one did it."""
    if view.draft is None:
        return False
    part = view.form.cleaned_data["part"]
    return Batch.objects.parts_beside(view.draft).filter(part=part).exists()


def _confirmation_faults(view: LaunchView, total: str, amount: str) -> list[Finding]:
    if view.cost is None:
        return []
    price = f"{view.cost.total_usd:.2f}"
    if total != price:
        text = _("The price is $%(usd)s now. Look at it, and press again.")
        return [fault(text % {"usd": price})]
    if view.needs_amount and amount.strip().lstrip("$") != price:
        text = _("This spends money elsewhere: type the amount, %(usd)s.")
        return [fault(text % {"usd": price}, "amount")]
    return []


def _plan(view: LaunchView) -> Batch:
    assert view.draft is not None
    data = view.form.cleaned_data
    return plan_batch(
        draft=view.draft,
        part=data["part"],
        excluded_workers=data["excluded_workers"],
        budget_usd=data["budget_usd"],
        launched_by=view.person,
    ).batch
