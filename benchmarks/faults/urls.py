from django.http import HttpRequest, HttpResponse
from django.urls import path

from work.models import Job


def progress(request: HttpRequest) -> HttpResponse:
    """Access: anyone on this machine."""
    return HttpResponse(f"{Job.objects.finished().count()} jobs have ended.")


urlpatterns = [path("", progress)]
