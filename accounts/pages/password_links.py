"""Links for new passwords, which operators make where the site has no mail server."""

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.audit import name_for_good, record
from accounts.links import password_link
from accounts.models import User


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def password_links(request: HttpRequest) -> HttpResponse:
    """Make a link for a user's new password, displayed once, for the operator to pass on.

    Access: operators, who gave their password again; not for the accounts of other operators.
    """
    actor = request.user
    if not isinstance(actor, User) or not actor.is_staff:
        raise PermissionDenied(_("Operators of the site make links for new passwords."))
    context = {"section": "password_links", "username": request.POST.get("username", "").strip()}
    if request.method == "POST":
        user = User.objects.filter(username=context["username"], is_active=True).first()
        if user is None:
            messages.error(request, _("There is no such user."))
        elif user.is_staff or user.is_superuser or not user.has_usable_password():
            messages.error(
                request,
                _("For this account no link is made here. Use the command password_link."),
            )
        else:
            record(
                team=None, actor=actor, action="member.password_link", subject=name_for_good(user)
            )
            context["link"] = password_link(user)
    return render(request, "accounts/password_links.html", context)
