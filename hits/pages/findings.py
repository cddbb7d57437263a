from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _, ngettext

from hits.costs import Estimate
from hits.exceptions import BatchUnfit
from hits.models import Batch
from hits.pages.terms import LISTED, SAMPLE, UNSURE, LaunchForm
from hits.preflight import (
    Finding,
    Level,
    fault,
)
from hits.requirements import country_name, language_name, who_may_work
from hits.selections import n_out_elsewhere, require_judge, selected_items


def workers_text(draft: Batch) -> str:
    if draft.is_recruited:
        return ""
    parts = list(_requirements(draft))
    if not parts:
        return _("Any annotator of the marketplace.")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _requirements(draft: Batch) -> Iterator[str]:
    who = who_may_work(draft)
    if who.countries:
        yield _("country %(names)s") % {"names": _any_of(map(country_name, who.countries))}
    if who.languages:
        yield _("languages %(names)s") % {"names": ", ".join(map(language_name, who.languages))}
    if who.min_approval_percent:
        yield _("approval rate %(n)d %% or more") % {"n": who.min_approval_percent}
    if who.min_approved:
        yield _("approved HITs %(n)s or more") % {"n": f"{who.min_approved:,}"}
    if draft.needs_masters:
        yield _("Masters only")
    qualifications = draft.document.qualifications
    if n_tests := len(qualifications.tests):
        yield ngettext("%(n)d test passed", "%(n)d tests passed", n_tests) % {"n": n_tests}
    if qualifications.practice is not None:
        yield _("practice passed")


def _any_of(names: Iterable[str]) -> str:
    *first, last = names
    if not first:
        return last
    return _("%(names)s or %(last)s") % {"names": ", ".join(first), "last": last}


def agreement_findings(draft: Batch, batches: Iterable[Batch]) -> Iterator[Finding]:
    if draft.max_assignments > 1 or any(one.round != draft.round for one in batches):
        return
    yield Finding(
        Level.WARNING,
        _("One worker for each item: how far annotators agree will not be known."),
        "max_assignments",
        code="one_worker",
    )


def form_findings(form: LaunchForm) -> Iterator[Finding]:
    for name, errors in form.errors.items():
        label = form.fields[name].label if name in form.fields else ""
        for error in errors:
            yield fault(f"{label}: {error}" if label else str(error), name)


def selection_findings(draft: Batch, data: Mapping[str, Any], n_left: int) -> Iterator[Finding]:
    how = data["how"]
    count = {SAMPLE: "n_items", UNSURE: "n_unsure"}.get(how)
    if not n_left:
        yield fault(
            _("Every item has a HIT in round %(round)s already. Another round asks again.")
            % {"round": draft.round},
            "round",
        )
    elif count is not None and (data[count] or 0) > n_left:
        yield fault(
            ngettext("Only %(n)s item has no HIT yet.", "Only %(n)s items have no HIT yet.", n_left)
            % {"n": f"{n_left:,}"},
            count,
            code="too_few_items",
        )
    elif how in (LISTED, UNSURE):
        try:
            # Which items are drawn does not change what they cost: they are drawn by the press.
            if how == LISTED:
                selected_items(draft)
            else:
                require_judge(draft)
        except BatchUnfit as error:
            yield fault(str(error), "keys" if how == LISTED else "judge")


def elsewhere_findings(draft: Batch, batches: Iterable[Batch]) -> Iterator[Finding]:
    elsewhere = [
        one
        for one in batches
        if one.round == draft.round and one.connection_id != draft.connection_id
    ]
    if not elsewhere or not (n := n_out_elsewhere(draft)):
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
    yield Finding(
        Level.WARNING,
        text % {"n": f"{n:,}", "round": draft.round},
        code="out_at_same_marketplace" if is_same else "out_elsewhere",
    )


def own_budget_findings(cost: Estimate | None, most_usd: Decimal | None) -> Iterator[Finding]:
    if most_usd is not None and cost is not None and cost.total_usd > most_usd:
        yield fault(_("This costs more than it may."), "budget_usd")
