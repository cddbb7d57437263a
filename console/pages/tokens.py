"""Signing in, and the tokens of a team's programs: made, displayed once, revoked."""

from typing import cast

from allauth.account.views import LoginView
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.exceptions import AccountsError
from accounts.models import ApiToken, Membership, Team
from accounts.pages.account import display_once, text_once
from accounts.roles import Permission, Role
from accounts.teams import appointable_roles
from accounts.tokens import create_team_token, revoke_token
from console.access import person, team_for
from console.forms import TeamTokenForm


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def tokens(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may manage the team."""
    team, permissions = team_for(request, slug, Permission.MANAGE)
    roles = [role for role in appointable_roles(permissions) if role != Role.OWNER]
    form, name = TeamTokenForm(request.POST or None, roles=roles), f"new-token:{team.pk}"
    if request.method == "POST" and form.is_valid():
        try:
            new = create_team_token(team=team, created_by=person(request), **form.values)
            display_once(request, name, new.text)
            return redirect("console:team-tokens", slug)
        except AccountsError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
    context = {"team": team, "tokens": _tokens(team), "form": form}
    context["text"] = text_once(request, name)
    return render(request, "console/teams/tokens.html", context)


def _tokens(team: Team) -> list[ApiToken]:
    roles = dict(Membership.objects.filter(team=team).values_list("user", "role"))
    rows = list(team.api_tokens.standing().select_related("created_by"))
    for row in rows:
        role = roles.get(row.user_id)
        row.role = Role(role).label if role else ""  # type: ignore[attr-defined]
    return rows


@require_POST
def revoke(request: HttpRequest, slug: str, token_id: int) -> HttpResponse:
    """Access: those who may manage the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    revoke_token(token=get_object_or_404(ApiToken, team=team, pk=token_id), actor=person(request))
    messages.success(request, _("The token was revoked."))
    return redirect("console:team-tokens", slug)


class SignInView(LoginView):  # type: ignore[misc]
    """The console's sign-in page.

    Access: anybody.
    """

    template_name = "console/login.html"
    success_url = reverse_lazy("console:studies")

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        return cast(HttpResponseBase, super().dispatch(request, *args, **kwargs))


login = login_not_required(SignInView.as_view())
