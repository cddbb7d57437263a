"""Accepting an invitation: with the account one has, or with a new one."""

from __future__ import annotations

from allauth.account.utils import perform_login
from allauth.decorators import rate_limit
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotation.exceptions import AnnotationError
from annotation.invitations import invitation_of, join, join_with_new_account
from annotation.models import Invitation
from annotation.pages.members import REFUSALS
from console.access import person
from console.forms import NewAccountForm

SESSION_KEY = "invitation"


@login_not_required
@never_cache
@require_safe
@rate_limit(action="invitation")  # type: ignore[untyped-decorator]
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Keep the token out of the address, where other sites and logs would read it.

    Access: whoever has a link that holds.
    """
    try:
        invitation_of(token)
    except AnnotationError as error:
        return _refusal_page(request, error)
    request.session[SESSION_KEY] = token
    return redirect("console:accept")


@login_not_required
@never_cache
@require_safe
def accept(request: HttpRequest) -> HttpResponse:
    """Access: whoever has a link that holds. Opening it accepts nothing yet."""
    try:
        invitation = invitation_of(_token(request))
    except AnnotationError as error:
        return _refusal_page(request, error)
    return _page(request, invitation, NewAccountForm())


@require_POST
def join_signed_in(request: HttpRequest) -> HttpResponse:
    """Access: signed in, with a link that holds."""
    try:
        destination = join(token=_token(request), user=person(request))
    except REFUSALS as error:
        return _refusal_page(request, error)
    del request.session[SESSION_KEY]
    return redirect(_address_of(destination))


@login_not_required
@never_cache
@require_POST
@rate_limit(action="signup")  # type: ignore[untyped-decorator]
def join_anew(request: HttpRequest) -> HttpResponse:
    """Access: whoever has a link that holds and is not signed in."""
    form, token = NewAccountForm(request.POST), _token(request)
    try:
        invitation = invitation_of(token)
    except AnnotationError as error:
        return _refusal_page(request, error)
    user = None if request.user.is_authenticated else _new_user(form, token)
    if user is None:
        return _page(request, invitation, form)
    del request.session[SESSION_KEY]
    signed_in: HttpResponse = perform_login(request, user, redirect_url=_address_of(invitation))
    return signed_in


def _new_user(form: NewAccountForm, token: str) -> User | None:
    """The new account, or None where the form then says why there is none."""
    if not form.is_valid():
        return None
    try:
        return join_with_new_account(token=token, **form.cleaned_data)
    except REFUSALS as error:
        form.add_error(None, ValidationError(str(error), code=error.code))
        return None


def _page(request: HttpRequest, invitation: Invitation, form: NewAccountForm) -> HttpResponse:
    context = {"invitation": invitation, "form": form, "here": reverse("console:accept")}
    return render(request, "annotation/teams/accept.html", context)


def _refusal_page(request: HttpRequest, error: Exception) -> HttpResponse:
    return render(request, "annotation/teams/invitation_void.html", {"reason": error}, status=410)


def _address_of(invitation: Invitation) -> str:
    if invitation.study is not None:
        return reverse("console:study", args=[invitation.study.slug])
    assert invitation.team is not None
    return reverse("console:team", args=[invitation.team.slug])


def _token(request: HttpRequest) -> str:
    return str(request.session.get(SESSION_KEY, ""))
