"""A team's recruiters: accounts whose token a marketplace of the team keeps."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from accounts.roles import Permission
from console.access import person, team_for
from hits.models import Recruiter
from hits.pages.connection_forms import RecruiterForm
from hits.pages.connections import connections_page
from hits.recruiter_accounts import request_end, request_recruiter


@require_POST
def connect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team. The token is tried in the background."""
    team, permissions = team_for(request, slug, Permission.MANAGE)
    form = RecruiterForm(team, request.POST)
    if not form.is_valid():
        return connections_page(request, team, permissions, recruiter_form=form)
    request_recruiter(**form.cleaned_data, actor=person(request))
    return redirect("console:connections", slug)


@require_POST
def disconnect(request: HttpRequest, slug: str, recruiter_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    recruiter = get_object_or_404(Recruiter.objects.of(team), pk=recruiter_id)
    request_end(recruiter=recruiter, actor=person(request))
    return redirect("console:connections", slug)
