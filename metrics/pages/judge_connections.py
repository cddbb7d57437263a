"""A team's connections to language models."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.roles import Permission
from console.access import person, team_for
from metrics.exceptions import ParameterRefused
from metrics.judge_connections import close_judge_connection, connect_judge
from metrics.models import JudgeConnection
from metrics.pages.scoring_forms import JudgeConnectionForm


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def judge_connections(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team who may see money; managers connect."""
    is_post = request.method == "POST"
    team, permissions = team_for(
        request, slug, Permission.MANAGE if is_post else Permission.VIEW_MONEY
    )
    form = JudgeConnectionForm(request.POST if is_post else None, label_suffix="")
    if is_post and form.is_valid():
        try:
            connect_judge(team=team, actor=person(request), **form.cleaned_data)
        except ParameterRefused as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("The connection is stored."))
            return redirect("console:judge-connections", slug)
    may_manage = Permission.MANAGE in permissions
    rows = JudgeConnection.objects.of(team)
    context = {"team": team, "connections": rows, "form": form, "may_manage": may_manage}
    return render(request, "metrics/judge_connections.html", context)


@require_POST
def close(request: HttpRequest, slug: str, connection_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    connection = get_object_or_404(JudgeConnection.objects.of(team), pk=connection_id)
    close_judge_connection(connection=connection, actor=person(request))
    return redirect("console:judge-connections", slug)
