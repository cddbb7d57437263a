"""Signing up, in and out; and the worker's profile."""

from allauth.account.utils import perform_login
from allauth.account.views import LoginView
from allauth.decorators import rate_limit
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from marketplace.models import WorkerAccount
from marketplace.web.worker.access import worker_required
from marketplace.web.worker.forms import ProfileForm, SignupForm


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="signup")  # type: ignore[untyped-decorator]
def signup(request: HttpRequest) -> HttpResponse:
    """Open a worker account.

    Access: anybody.
    """
    form = SignupForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        signed_in: HttpResponse = perform_login(
            request, form.enrol(), redirect_url=_next(request), signup=True
        )
        return signed_in
    return render(request, "marketplace/signup.html", {"form": form, "next": _next(request)})


login = LoginView.as_view(
    template_name="marketplace/login.html",
    success_url=reverse_lazy("marketplace:groups"),
)
logout = LogoutView.as_view(next_page="marketplace:login")


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
def profile(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What the marketplace's own qualifications go by.

    Access: workers, each their own.
    """
    form = ProfileForm(request.POST if request.method == "POST" else None, instance=worker)
    if form.is_valid():
        form.save()
        messages.success(request, _("Your profile was saved."))
        return redirect("marketplace:profile")
    return render(request, "marketplace/profile.html", {"form": form, "worker": worker})


def _next(request: HttpRequest) -> str:
    """Where a link led before the worker had to sign up; nowhere but on this site."""
    address = request.POST.get("next") or request.GET.get("next") or ""
    is_here = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_here else reverse("marketplace:groups")
