from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import AccountsError
from accounts.roles import Permission
from accounts.teams import create_own_team, permissions_in_team
from annotation.access import give_to_team
from annotation.exceptions import AnnotationError
from annotation.models.studies import CountedStudy
from annotation.pages.stages import study_for, study_page
from console.access import may, person
from console.forms import problems_of
from error_codes import CodedText
from hits.costs import Estimate
from hits.exceptions import HitsError, LaunchedMeanwhile
from hits.models import Batch
from hits.pages.connections import (
    StudyTeamForm,
    connecting_context,
    request_site,
    store_budget,
)
from hits.pages.pricing import PRICE_CHANGED, LaunchView
from hits.pages.terms import SAMPLE, UNSURE
from hits.plans import plan_batch
from hits.preflight import Finding, fault
from hits.progress import progress_of
from hits.publications import awaits_publication, is_being_published, request_publication

# Of a sum that a form sends back, as it is shown again.
LONGEST_PRICE = 20


def launch_batch(
    view: LaunchView, *, total: str, amount: str, offer: str | None = None
) -> tuple[Batch, CodedText | None] | None:
    """Plan the batch and publish it in the background; None if something holds it, with the faults
    among the view's findings. Launching the same part of the round again returns the first batch
    and publishes nothing a second time."""
    if not _is_launched(view):
        outdated = _outdated_faults(view, total, offer)
        # Another price of the same items keeps the choice of them.
        view.is_outdated = any(one.code != PRICE_CHANGED for one in outdated)
        view.extra += outdated or _confirmation_faults(view, amount)
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
    if (repetition := _repetition(batch)) is None:
        request_publication(batch=batch, requested_by=view.person)
    return batch, repetition


def _repetition(batch: Batch) -> CodedText | None:
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
    if view.draft is None:
        return False
    return (
        Batch.objects.parts_beside(view.draft).filter(part=view.form.cleaned_data["part"]).exists()
    )


def _outdated_faults(view: LaunchView, total: str, offer: str | None) -> list[Finding]:
    if view.cost is None or view.choice is None:
        return []
    price = _price_text(view.cost)
    if total != price:
        return [
            fault(
                _(
                    "The price changed from $%(before)s to $%(usd)s. Your choices are kept: check "
                    "the new price and publish again."
                )
                % {"before": total[:LONGEST_PRICE] or "–", "usd": price},
                code=PRICE_CHANGED,
            )
        ]
    if offer not in (None, view.offer):
        text = _(
            "Something was launched or imported since this page was opened, and this is another "
            "launch now (of items: %(n)s). Look at what is left, choose again, and press."
        )
        return [fault(text % {"n": f"{view.choice.n_items:,}"}, code="offer_changed")]
    return []


def _confirmation_faults(view: LaunchView, amount: str) -> list[Finding]:
    price = _price_text(view.cost) if view.cost and view.needs_amount else None
    if price is None or amount.strip().lstrip("$") == price:
        return []
    return [
        fault(
            _("This spends money elsewhere: type the amount, %(usd)s.") % {"usd": price}, "amount"
        )
    ]


def _price_text(cost: Estimate) -> str:
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


@require_safe
@never_cache
def launch(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; the form for those who may spend."""
    study = study_for(request, slug)
    if study.rehearsal_of is not None:
        return redirect("console:launch", study.rehearsal_of.slug)
    data = request.GET.dict() if "how" in request.GET else None
    again, n_to_buy = (_number(request.GET.get(name, "")) for name in ("again", "buy"))
    where = request.GET.get("where", "")
    view = LaunchView(
        study,
        person(request),
        data,
        again=Batch.objects.of(study).filter(pk=again).first() if again else None,
        n_to_buy=n_to_buy,
        how_to_buy=where if where in (SAMPLE, UNSURE) else "",
        is_elsewhere="elsewhere" in request.GET,
    )
    return _page(request, study, view)


@require_safe
def former_address(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study. Links to the page from before it was Launch."""
    return redirect("console:launch", study_for(request, slug).slug, permanent=True)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 18 else 0


def _page(request: HttpRequest, study: CountedStudy, view: LaunchView) -> HttpResponse:
    may_spend = may(request, Permission.SPEND)
    context: dict[str, Any] = {"progress": progress_of(study), "view": view}
    if may_spend and study.team is None:
        context["team_form"] = StudyTeamForm(person(request))
    elif may_spend and study.team is not None and not view.connections:
        context |= connecting_context(study.team, person(request))
    is_possible = may_spend and study.archived_at is None
    context["has_form"] = is_possible and bool(view.connections) and study.n_items > 0
    return study_page(request, study, "hits/launch", context)


@require_POST
def publish(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may spend."""
    study = study_for(request, slug, Permission.SPEND)
    # The buttons that mend the pay and, without scripts, show the price launch nothing.
    if {"enough_usd", "price"} & request.POST.keys():
        return _page(request, study, LaunchView(study, person(request), request.POST.dict()))
    view = LaunchView(study, person(request), request.POST.dict(), is_final=True)
    if not view.connections:
        return redirect("console:launch", slug)
    confirmed = {name: request.POST.get(name, "") for name in ("total", "amount", "offer")}
    if launched := launch_batch(view, **confirmed):
        _batch, repetition = launched
        if repetition:
            messages.info(request, repetition, extra_tags=repetition.code)
        return redirect("console:launch", slug)
    return _page(request, study, view.reopened() if view.is_outdated else view)


@require_POST
def team(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: the owner of the study; it is given to a team of theirs, or to a new one if the site
    lets them create teams."""
    study = study_for(request, slug, Permission.OWN)
    form = StudyTeamForm(person(request), request.POST)
    if not form.is_valid():
        messages.error(request, problems_of(form))
        return redirect("console:launch", slug)
    try:
        new_team = form.cleaned_data["team"] or create_own_team(
            name=form.cleaned_data["name"], owner=person(request)
        )
        give_to_team(study=study, team=new_team, actor=person(request))
    except (AccountsError, AnnotationError) as error:
        messages.error(request, str(error), extra_tags=error.code)
    return redirect("console:launch", slug)


@require_POST
def connect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may manage the study's team, if the site lets it become a requester."""
    study = study_for(request, slug, Permission.MANAGE)
    if study.team is None or Permission.MANAGE not in permissions_in_team(
        study.team, person(request)
    ):
        raise PermissionDenied(_("A manager of the team connects its marketplaces."))
    request_site(request, study.team)
    return redirect("console:launch", slug)


@require_POST
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may manage the study."""
    store_budget(request, study=study_for(request, slug, Permission.MANAGE))
    return redirect("console:launch", slug)
