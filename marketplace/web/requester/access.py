"""Who may see a requester's pages."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from marketplace.models import Requester
from marketplace.users import User

P = ParamSpec("P")


def user_of(request: HttpRequest) -> User:
    """The signed-in user of a page that asks for one."""
    if not isinstance(request.user, User):
        raise TypeError("request must be a signed-in user's")
    return request.user


def requesters_of(user: User) -> QuerySet[Requester]:
    """The requesters in whose name this user acts."""
    return Requester.objects.filter(users=user).order_by("name")


def is_owner(requester: Requester, user: User) -> bool:
    """Whether the user may see who the requester's participants are at their recruiter."""
    return requester.owners.filter(pk=user.pk).exists()


def requester_required(
    view: Callable[Concatenate[HttpRequest, Requester, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """A view of a requester's, for the requester's own users; for others it isn't there."""

    @login_required(login_url="marketplace:requester_login")
    @wraps(view)
    def guarded(request: HttpRequest, requester_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        requester = requesters_of(user_of(request)).filter(public_id=requester_id).first()
        if requester is None:
            raise Http404(_("There is no such requester."))
        return view(request, requester, *args, **kwargs)

    return guarded
