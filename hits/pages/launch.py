"""Launching: what it costs and pays, what is wrong with it, and the press that publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import AccountsError
from accounts.models import Team, User
from accounts.roles import Permission
from accounts.teams import create_own_team, may_connect_this_site, permissions_in_team
from annotation.access import give_to_team
from annotation.exceptions import AnnotationError
from annotation.pages.study import (
    study_for,
    study_page,
)
from console.access import (
    may,
    person,
)
from console.forms import problems_of
from hits.budgets import set_budget
from hits.connection_requests import TEST_FUNDS_USD, connection_jobs, request_this_site
from hits.exceptions import HitsError
from hits.models import Batch
from hits.pages.connection_forms import (
    BudgetForm,
    StudyTeamForm,
)
from hits.pages.launch_form import (
    SAMPLE,
    UNSURE,
)
from hits.pages.launch_view import LaunchView
from hits.pages.launches import Press
from hits.pages.launches import launch as launch_batch
from hits.pages.progress import progress_of

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


@require_safe
@never_cache
def launch(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; the form for those who may spend."""
    study = study_for(request, slug)
    data = request.GET.dict() if "how" in request.GET else None
    n_to_buy = _number(request.GET.get("buy", ""))
    where = request.GET.get("where", "")
    view = LaunchView(
        study,
        person(request),
        data,
        again=_again(request, study),
        n_to_buy=n_to_buy,
        how_to_buy=where if where in (SAMPLE, UNSURE) else "",
        is_elsewhere="elsewhere" in request.GET,
    )
    return _page(request, study, view)


@require_safe
def former_address(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study. Links to the page from before it was Launch."""
    return redirect("console:launch", study_for(request, slug).slug, permanent=True)


def _again(request: HttpRequest, study: CountedStudy) -> Batch | None:
    """The batch whose items are to be asked about once more, where the address names one."""
    key = _number(request.GET.get("again", ""))
    return Batch.objects.of(study).filter(pk=key).first() if key else None


def _number(text: str) -> int:
    """A number in an address; 0 where it is none."""
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


def connecting_context(team: Team, user: User) -> dict[str, Any]:
    """What a page needs to offer the connection of this site's marketplace."""
    return {
        "may_connect_this_site": may_connect_this_site(team, user),
        "connecting": connection_jobs(team).first(),
        "test_funds_usd": TEST_FUNDS_USD if settings.MARKETPLACE_TEST_FUNDS else None,
    }


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
    confirmed = (request.POST.get(name, "") for name in ("total", "amount", "offer"))
    if launched := launch_batch(view, Press(*confirmed)):
        if launched.repetition:
            messages.info(request, launched.repetition, extra_tags=launched.repetition.code)
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
    connect_site(request, study.team)
    return redirect("console:launch", slug)


def connect_site(request: HttpRequest, team: Team) -> None:
    """Request the connection of a team to this site's marketplace, or show why not."""
    try:
        request_this_site(
            team=team, name=_("This site"), with_test_funds=True, actor=person(request)
        )
    except HitsError as error:
        messages.error(request, str(error), extra_tags=error.code)


@require_POST
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may manage the study."""
    study = study_for(request, slug, Permission.MANAGE)
    form = BudgetForm(request.POST)
    if form.is_valid():
        set_budget(study=study, cap_usd=form.cleaned_data["cap_usd"], actor=person(request))
    else:
        messages.error(request, problems_of(form))
    return redirect("console:launch", slug)
