"""The site's first page: the studies of those who have any, the marketplace for workers."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.models import Membership, User
from annotation.models import Study
from hits.pages.studies import studies
from marketplace.web.worker.access import worker_of


def front_page(request: HttpRequest) -> HttpResponse:
    """Access: signed in; a worker without a team or a study comes to the marketplace."""
    user = request.user
    if isinstance(user, User) and worker_of(request) is not None and not _researches(user):
        return redirect("marketplace:groups")
    return studies(request)


def _researches(user: User) -> bool:
    return (
        user.is_superuser
        or Membership.objects.filter(user=user).exists()
        or Study.objects.visible_to(user).exists()
    )
