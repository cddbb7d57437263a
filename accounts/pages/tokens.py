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
from accounts.pages.own import require_password
from accounts.tokens import create_personal_token, revoke_token


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def tokens(request: HttpRequest) -> HttpResponse:
    """Access: signed-in users, each their own, who gave their password again."""
    user = require_password(request)
    form, text = TokenForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        try:
            text = create_personal_token(user=user, **form.values).text
            form = TokenForm()
        except AccountsError as refused:
            form.add_error(None, str(refused))
    own = ApiToken.objects.personal(user).standing()
    context = {"section": "tokens", "tokens": own, "form": form, "text": text}
    return render(request, "accounts/tokens.html", context)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Access: signed-in users, each their own."""
    user = require_password(request)
    revoke_token(token=get_object_or_404(ApiToken.objects.personal(user), pk=token_id), actor=user)
    messages.success(request, _("The token was revoked."))
    return redirect("api_tokens")
