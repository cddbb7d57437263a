"""The tokens of one's own programs: made, displayed once, revoked."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.exceptions import AccountsError
from accounts.forms import TokenForm
from accounts.models import ApiToken
from accounts.pages.passwords import require_password
from accounts.tokens import create_personal_token, revoke_token
from encryption import UndecryptableSecret, decrypt, encrypt

OWN = "new-token"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def tokens(request: HttpRequest) -> HttpResponse:
    """Access: signed-in users, each their own, who gave their password again."""
    user = require_password(request)
    form = TokenForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            display_once(request, OWN, create_personal_token(user=user, **form.values).text)
            return redirect("api_tokens")
        except AccountsError as refused:
            form.add_error(None, str(refused))
    tokens = ApiToken.objects.personal(user).standing()
    context = {"section": "tokens", "tokens": tokens, "form": form}
    return render(request, "accounts/tokens.html", context | {"text": text_once(request, OWN)})


def display_once(request: HttpRequest, name: str, text: str) -> None:
    """Keep a new token's text, encrypted, for the page that follows: reloading that page then
    makes no second token."""
    request.session[name] = encrypt(text)


def text_once(request: HttpRequest, name: str) -> str:
    """The text that was kept, which is forgotten with this; empty where there is none."""
    stored = request.session.pop(name, None) if request.method == "GET" else None
    try:
        return decrypt(stored) if stored else ""
    except UndecryptableSecret:
        return ""


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Access: signed-in users, each their own."""
    user = require_password(request)
    revoke_token(token=get_object_or_404(ApiToken.objects.personal(user), pk=token_id), actor=user)
    messages.success(request, _("The token was revoked."))
    return redirect("api_tokens")
