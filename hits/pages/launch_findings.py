"""Everything that speaks against a launch, or for it, at once: of its form and of its draft."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.protocols.versions import current_document
from hits.exceptions import BatchUnfit
from hits.item_findings import item_findings
from hits.pages.launch_form import (
    LISTED,
    SAMPLE,
    UNSURE,
    LaunchForm,
)
from hits.pages.launch_workers import agreement_findings
from hits.pages.protocol_view import protocol_findings
from hits.preflight import (
    Finding,
    Level,
    budget_findings,
    connection_findings,
    fault,
    language_findings,
    order_findings,
    page_findings,
    pay_findings,
    practice_findings,
    qualification_test_findings,
    recruiter_findings,
    term_findings,
    version_findings,
)
from hits.selections import n_out_elsewhere, require_judge, selected_items

if TYPE_CHECKING:
    from hits.costs import Estimate
    from hits.models import Batch
    from hits.pages.launch_view import LaunchView

# What is required of workers, and not asked of participants.
OF_WORKERS = (
    "countries",
    "languages",
    "min_approval",
    "min_approved",
    "needs_masters",
    "wave_size",
)


def findings_of(view: LaunchView) -> Iterator[Finding]:
    """The findings on what the page shows, in the order in which it lists them."""
    yield from _form_findings(view.form)
    yield from protocol_findings(view.study)
    yield from item_findings(view.study, current_document(view.study))
    yield from page_findings(view.pages)
    if view.draft is None:
        return
    if view.is_final and view.choice is None:
        yield fault(_("Choose how much is launched."), "how")
    data = view.form.cleaned_data
    yield from _selection_findings(view.draft, data, view.n_left)
    yield from _elsewhere_findings(view.draft, view.batches)
    yield from connection_findings(view.draft, view.cost, view.funds)
    if view.draft.is_recruited:
        has_recruiter = view.draft.connection.pk in view.recruiters
        names = [name for name in OF_WORKERS if data[name]]
        yield from recruiter_findings(view.draft, has_recruiter, n_ignored=len(names))
    else:
        yield from language_findings(view.draft, view.funds)
        yield from qualification_test_findings(view.draft)
        yield from practice_findings(view.draft, view.duration, view.floor_usd)
        yield from pay_findings(view.draft, view.duration, view.floor_usd)
    yield from order_findings(view.draft, view.funds)
    yield from version_findings(view.draft, view.batches, view.study.protocols.all())
    yield from budget_findings(view.rooms, view.cost)
    yield from _own_budget_findings(view.cost, data["budget_usd"])
    yield from agreement_findings(view.draft, view.batches)
    yield from term_findings(view.draft, view.choice.n_items if view.choice else 0)


def _form_findings(form: LaunchForm) -> Iterator[Finding]:
    for name, errors in form.errors.items():
        label = form.fields[name].label if name in form.fields else ""
        for error in errors:
            yield fault(f"{label}: {error}" if label else str(error), name)


def _selection_findings(draft: Batch, data: Mapping[str, Any], n_left: int) -> Iterator[Finding]:
    how = data["how"]
    count = {SAMPLE: "n_items", UNSURE: "n_unsure"}.get(how)
    if not n_left:
        text = _("Every item has a HIT in round %(round)s already. Another round asks again.")
        yield fault(text % {"round": draft.round}, "round")
    elif count is not None and (data[count] or 0) > n_left:
        text = ngettext(
            "Only %(n)s item has no HIT yet.", "Only %(n)s items have no HIT yet.", n_left
        )
        yield fault(text % {"n": f"{n_left:,}"}, count, code="too_few_items")
    elif how in (LISTED, UNSURE):
        try:
            # Which items are drawn does not change what they cost: they are drawn by the press.
            if how == LISTED:
                selected_items(draft)
            else:
                require_judge(draft)
        except BatchUnfit as error:
            yield fault(str(error), "keys" if how == LISTED else "judge")


def _elsewhere_findings(draft: Batch, batches: Iterable[Batch]) -> Iterator[Finding]:
    """Of what is out over another connection: the same workers may come to both."""
    others = [one for one in batches if one.round == draft.round]
    elsewhere = [one for one in others if one.connection_id != draft.connection_id]
    if not elsewhere:
        return
    if not (n := n_out_elsewhere(draft)):
        return
    is_same = all(one.connection.marketplace == draft.connection.marketplace for one in elsewhere)
    if is_same:
        text = ngettext(
            "%(n)s item of the study is out in round %(round)s at the same marketplace, under "
            "another requester's key: what is published here asks for its judgments a second time.",
            "%(n)s items of the study are out in round %(round)s at the same marketplace, under "
            "another requester's key: what is published here asks for their judgments a second "
            "time.",
            n,
        )
    else:
        text = ngettext(
            "%(n)s item of the study is out in round %(round)s over another marketplace: what is "
            "published here asks for its judgments a second time.",
            "%(n)s items of the study are out in round %(round)s over another marketplace: what is "
            "published here asks for their judgments a second time.",
            n,
        )
    code = "out_at_same_marketplace" if is_same else "out_elsewhere"
    yield Finding(Level.WARNING, text % {"n": f"{n:,}", "round": draft.round}, code=code)


def _own_budget_findings(cost: Estimate | None, most_usd: Decimal | None) -> Iterator[Finding]:
    if most_usd is not None and cost is not None and cost.total_usd > most_usd:
        yield fault(_("This costs more than it may."), "budget_usd")
