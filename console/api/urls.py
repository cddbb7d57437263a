"""The addresses of the API under /api/v1/, and those from before it had versions."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.urlpatterns import format_suffix_patterns

from console.api import jobs, own, results, studies
from console.api.authentication import BearerToken

app_name = "api"

# Of one version: one that an address names would stand in a header.
schema = SpectacularAPIView.as_view(
    authentication_classes=[BearerToken, SessionAuthentication],
    permission_classes=[IsAuthenticated],
    api_version="1",
)

of_a_study: list[URLPattern | URLResolver] = [
    path("", studies.OneStudy.as_view(), name="study"),
    path("archive/", studies.Archive.as_view(), name="archive"),
    path("jobs/", jobs.Jobs.as_view(), name="jobs"),
    path("jobs/<int:job_id>/", jobs.OneJob.as_view(), name="job"),
    path("jobs/<int:job_id>/stop/", jobs.Stop.as_view(), name="job-stop"),
    path("jobs/<int:job_id>/resume/", jobs.Resume.as_view(), name="job-resume"),
    path("agreement/", results.Agreement.as_view(), name="agreement"),
    path("validation/", results.Validation.as_view(), name="validation"),
    path("disputes/", results.Disputes.as_view(), name="disputes"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", own.Root.as_view(), name="root"),
    path("me/", own.Own.as_view(), name="me"),
    path("schema/", schema, name="schema"),
    path("studies/", studies.Studies.as_view(), name="studies"),
    path("studies/<slug:slug>/", include(of_a_study)),
]

# From before there were versions: they answer as the same addresses of version 1 do.
STUDY = "studies/<slug:slug>/"
# As then, they take nothing.
one_study = studies.OneStudy.as_view(http_method_names=["get", "head"])
every_study = studies.Studies.as_view(http_method_names=["get", "head"])
FORMER = [
    path("", own.Root.as_view(), name="api-root"),
    path("studies/", every_study, name="api-study-list"),
    path(STUDY, one_study, name="api-study-detail"),
    path(f"{STUDY}agreement/", results.Agreement.as_view(), name="api-study-agreement"),
    path(f"{STUDY}validation/", results.Validation.as_view(), name="api-study-validation"),
    path(f"{STUDY}disputes/", results.Disputes.as_view(), name="api-study-disputes"),
]
former: list[URLPattern | URLResolver] = [
    *format_suffix_patterns(FORMER, allowed=["json"]),
    path("schema/", schema, name="schema"),
]
