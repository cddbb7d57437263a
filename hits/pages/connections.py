"""A team's marketplaces, its recruiters and its budget."""

from __future__ import annotations

from decimal import Decimal

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Team
from accounts.roles import Permission
from console.access import person, team_for
from console.forms import problems_of
from hits.budgets import set_budget
from hits.connection_requests import connection_jobs, request_connection
from hits.connections import close_connection
from hits.endpoints import AccessKey
from hits.expenses import charges_of
from hits.models import Budget, Connection, Recruiter
from hits.pages.connection_forms import (
    BudgetForm,
    ConnectionForm,
    RecruiterForm,
)
from hits.pages.launch import connect_site as request_site
from hits.pages.launch import connecting_context
from hits.recruiter_accounts import recruiter_jobs


@require_safe
@never_cache
def connections(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team who may see money."""
    return connections_page(request, *team_for(request, slug, Permission.VIEW_MONEY))


def connections_page(
    request: HttpRequest,
    team: Team,
    permissions: frozenset[Permission],
    *,
    form: ConnectionForm | None = None,
    recruiter_form: RecruiterForm | None = None,
) -> HttpResponse:
    """The page, with the form that was filled in wrongly."""
    budget = Budget.objects.filter(team=team).first()
    rows = list(Connection.objects.of(team))
    recruiter_job = recruiter_jobs(team).first()
    context = {
        "team": team,
        "connections": rows,
        "has_this_site": any(each.is_on_this_site and not each.closed_at for each in rows),
        "form": form or ConnectionForm(),
        "budget_form": BudgetForm(initial={"cap_usd": budget.cap_usd if budget else None}),
        "may_manage": Permission.MANAGE in permissions,
        "recruiters": _recruiters(team),
        "recruiter_form": recruiter_form or RecruiterForm(team, last=recruiter_job),
        "recruiter_job": recruiter_job,
    }
    context |= connecting_context(team, person(request))
    return render(request, "hits/connections.html", context)


def _recruiters(team: Team) -> list[tuple[Recruiter, Decimal, Decimal]]:
    """The team's, each with what it has paid participants and what it sets aside of more."""
    rows = Recruiter.objects.of(team).select_related("connection")
    rows = rows.prefetch_related("recruitments")
    return [(one, *charges_of(one)) for one in rows]


@require_safe
@never_cache
def connection_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team. Polled by pages; reloads them at the end."""
    team, _permissions = team_for(request, slug, Permission.VIEW)
    jobs = recruiter_jobs(team) if request.GET.get("of") == "recruiter" else connection_jobs(team)
    job = jobs.first()
    if request.headers.get("HX-Request") and not (job and job.is_unfinished):
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {"connecting": job, "team": team, "of": request.GET.get("of", "")}
    return render(request, "hits/_connecting.html", context)


@require_POST
def connect_site(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team, if the site lets it become a requester."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    request_site(request, team)
    return redirect("console:connections", slug)


@require_POST
def connect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team."""
    team, permissions = team_for(request, slug, Permission.MANAGE)
    form = ConnectionForm(request.POST)
    if not form.is_valid():
        return connections_page(request, team, permissions, form=form)
    data = form.cleaned_data
    request_connection(
        team=team,
        name=data["name"],
        endpoint_url=data["endpoint_url"],
        key=AccessKey(data["access_key_id"], data["secret_access_key"]),
        fees=data["fees"],
        actor=person(request),
    )
    return redirect("console:connections", slug)


@require_POST
def close(request: HttpRequest, slug: str, connection_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    connection = get_object_or_404(Connection.objects.of(team), pk=connection_id)
    close_connection(connection=connection, actor=person(request))
    return redirect("console:connections", slug)


@require_POST
def team_budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    form = BudgetForm(request.POST)
    if form.is_valid():
        set_budget(team=team, cap_usd=form.cleaned_data["cap_usd"], actor=person(request))
    else:
        messages.error(request, problems_of(form))
    return redirect("console:connections", slug)
