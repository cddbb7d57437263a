"""The site's addresses, and one whose view breaks."""

from django.contrib.auth.decorators import login_not_required
from django.urls import include, path


@login_not_required
def broken(request):
    raise RuntimeError("broken for the test")


urlpatterns = [path("broken/", broken), path("", include("config.urls"))]
