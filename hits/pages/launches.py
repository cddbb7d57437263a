"""The press that launches: what it must confirm, and the batch that comes of it, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from annotation.exceptions import AnnotationError
from error_codes import CodedText
from hits.exceptions import HitsError, LaunchedMeanwhile
from hits.launch_plans import plan_batch
from hits.models import Batch
from hits.preflight import Finding, fault
from hits.publications import awaits_publication, is_being_published, request_publication

if TYPE_CHECKING:
    from hits.costs import Estimate
    from hits.pages.launch_view import LaunchView


@dataclass(frozen=True)
class Press:
    """What a press confirms: the price and the offer that its page displayed, and the amount that
    was typed. A program confirms the price alone, with the part that it named."""

    total: str
    amount: str
    offer: str | None = None


@dataclass(frozen=True)
class Launch:
    """What came of a press: the batch, and of one that repeats another, that it did nothing."""

    batch: Batch
    repetition: CodedText | None = None


def launch(view: LaunchView, press: Press) -> Launch | None:
    """The batch of what the form says, which is published in the background; None, with the faults
    among the view's findings, where something holds it.

    Whoever launches the same part of the round again gets the batch of the first time, and no
    second publication of what is under way or done.
    """
    if not _is_launched(view):
        outdated = _outdated_faults(view, press)
        view.is_outdated = bool(outdated)
        view.extra += outdated or _confirmation_faults(view, press)
        if view.is_held:
            return None
    try:
        batch = _plan(view)
    except LaunchedMeanwhile as error:
        view.is_outdated = True
        view.extra.append(fault(str(error), code=error.code))
        return None
    except (HitsError, AnnotationError) as error:
        view.extra.append(fault(str(error), code=error.code))
        return None
    if repetition := _repetition(batch):
        return Launch(batch, repetition)
    request_publication(batch=batch, requested_by=view.person)
    return Launch(batch)


def _repetition(batch: Batch) -> CodedText | None:
    """That the batch is published, or will be without this press; None if it needs it."""
    if is_being_published(batch):
        text = _("This was launched already: batch %(pk)d is being published.")
        code = "publishing"
    elif awaits_publication(batch):
        return None
    else:
        text = _("This was launched already, as batch %(pk)d: nothing more is published or spent.")
        code = "published"
    return CodedText(text % {"pk": batch.pk}, code=code)


def _is_launched(view: LaunchView) -> bool:
    """Whether this very part of the round is planned: the press before this one did it."""
    if view.draft is None:
        return False
    part = view.form.cleaned_data["part"]
    return Batch.objects.parts_beside(view.draft).filter(part=part).exists()


def _outdated_faults(view: LaunchView, press: Press) -> list[Finding]:
    """Where this is not the launch any more that the page of the press had displayed."""
    if view.cost is None or view.choice is None:
        return []
    price = _price(view.cost)
    if press.total != price:
        text = _("The price is $%(usd)s now. Choose again how much, and press once you read it.")
        return [fault(text % {"usd": price}, code="price_changed")]
    if press.offer not in (None, view.offer):
        text = _(
            "Something was launched or imported since this page was opened, and this is another "
            "launch now (of items: %(n)s). Look at what is left, choose again, and press."
        )
        return [fault(text % {"n": f"{view.choice.n_items:,}"}, code="offer_changed")]
    return []


def _confirmation_faults(view: LaunchView, press: Press) -> list[Finding]:
    """Where an amount that leaves this site was not typed."""
    if view.cost is None or not view.needs_amount:
        return []
    price = _price(view.cost)
    if press.amount.strip().lstrip("$") == price:
        return []
    text = _("This spends money elsewhere: type the amount, %(usd)s.")
    return [fault(text % {"usd": price}, "amount")]


def _price(cost: Estimate) -> str:
    return f"{cost.total_usd:.2f}"


def _plan(view: LaunchView) -> Batch:
    assert view.draft is not None
    data = view.form.cleaned_data
    return plan_batch(
        draft=view.draft,
        part=data["part"],
        n_items=view.choice.n_items if view.choice else None,
        excluded_workers=data["excluded_workers"],
        budget_usd=data["budget_usd"],
        launched_by=view.person,
    ).batch
