from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from allauth.account.utils import perform_login
from allauth.account.views import LoginView
from allauth.decorators import rate_limit
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required, login_required
from django.contrib.auth.views import LogoutView
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace.exceptions import AccessKeyDoesNotExist, TooManyKeys, first_or_raise, require
from marketplace.models import AccessKey, LedgerEntry, ProblemReport, Requester
from marketplace.money import ledger
from marketplace.people import enrolment
from marketplace.users import User
from marketplace.web.requester.forms import KeyForm, MoreTimeForm, RequesterSignUpForm

# Who may see a requester's pages.

P = ParamSpec("P")


def user_of(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise TypeError("request must be a signed-in user's")
    return request.user


def requesters_of(user: User) -> QuerySet[Requester]:
    return Requester.objects.filter(users=user).order_by("name")


def is_owner(requester: Requester, user: User) -> bool:
    # Owners may see who participants are at their recruiter.
    return requester.owners.filter(pk=user.pk).exists()


def requester_required(
    view: Callable[Concatenate[HttpRequest, Requester, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    @login_required(login_url="marketplace:requester_login")
    @wraps(view)
    def guarded(request: HttpRequest, requester_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        requester = first_or_raise(
            requesters_of(user_of(request)).filter(public_id=requester_id),
            Http404(_("There is no such requester.")),
        )
        return view(request, requester, *args, **kwargs)

    return guarded


ENTRIES_PER_PAGE = 100
REPORTS_LISTED = 50


class SignInView(LoginView):  # type: ignore[misc]
    """Signing in as a requester, or as an operator.

    Access: anybody.
    """

    template_name = "marketplace/requester/login.html"
    success_url = reverse_lazy("marketplace:requester_index")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(
            is_open=settings.MARKETPLACE_REQUESTER_SIGN_UP, **kwargs
        )
        return context


login = SignInView.as_view()
logout = LogoutView.as_view(next_page="marketplace:requester_login")


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="signup")  # type: ignore[untyped-decorator]
def sign_up(request: HttpRequest) -> HttpResponse:
    """Become a requester.

    Access: anybody, where the setting MARKETPLACE_REQUESTER_SIGN_UP is on.
    """
    require(
        settings.MARKETPLACE_REQUESTER_SIGN_UP,
        Http404(_("Requesters are enrolled by an operator here.")),
    )
    form = RequesterSignUpForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        home = reverse("marketplace:requester", args=[form.enrol().public_id])
        signed_in: HttpResponse = perform_login(
            request, form.instance, redirect_url=home, signup=True
        )
        return signed_in
    return render(request, "marketplace/requester/sign_up.html", {"form": form})


@require_safe
@login_required(login_url="marketplace:requester_login")
def index(request: HttpRequest) -> HttpResponse:
    """The requesters in whose name the user acts.

    Access: signed-in users, each their own.
    """
    mine = list(requesters_of(user_of(request)))
    if len(mine) == 1:
        return redirect("marketplace:requester", mine[0].public_id)
    return render(request, "marketplace/requester/index.html", {"requesters": mine})


@require_safe
@requester_required
def overview(request: HttpRequest, requester: Requester) -> HttpResponse:
    """Balance and keys.

    Access: the requester's users.
    """
    return render(request, "marketplace/requester/overview.html", _overview(requester))


@require_POST
@never_cache
@requester_required
@sensitive_variables("issued")
def issue_key(request: HttpRequest, requester: Requester) -> HttpResponse:
    """Make one more key, and show its secret on this page only.

    Access: the requester's users.
    """
    form = KeyForm(request.POST)
    issued = None
    if form.is_valid():
        try:
            issued = enrolment.issue_key(
                requester=requester, label=form.cleaned_data["label"], user=user_of(request)
            )
        except TooManyKeys as error:
            form.add_error(None, ValidationError(str(error), code=error.code))
    context = _overview(requester) | {"form": KeyForm() if issued else form, "issued": issued}
    return render(request, "marketplace/requester/overview.html", context)


@require_POST
@requester_required
def revoke_key(request: HttpRequest, requester: Requester, access_key_id: str) -> HttpResponse:
    """End a key.

    Access: the requester's users.
    """
    try:
        enrolment.revoke_key(
            requester=requester, access_key_id=access_key_id, user=user_of(request)
        )
    except AccessKeyDoesNotExist as error:
        raise Http404(str(error)) from error
    messages.success(
        request, _("Key %(access_key_id)s is revoked.") % {"access_key_id": access_key_id}
    )
    return redirect("marketplace:requester", requester.public_id)


@require_POST
@requester_required
def more_time(request: HttpRequest, requester: Requester) -> HttpResponse:
    """Set how much time workers may add.

    Access: the requester's users.
    """
    form = MoreTimeForm(request.POST, instance=requester)
    if not form.is_valid():
        context = _overview(requester) | {"more_time": form}
        return render(request, "marketplace/requester/overview.html", context, status=422)
    form.save()
    messages.success(request, _("Saved."))
    return redirect("marketplace:requester", requester.public_id)


@require_safe
@requester_required
def statement(request: HttpRequest, requester: Requester) -> HttpResponse:
    """Every movement on the requester's account.

    Access: the requester's users.
    """
    page = Paginator(
        LedgerEntry.objects.filter(account=ledger.available_account(requester))
        .order_by("-pk")
        .select_related("transaction__hit__hit_type", "transaction__assignment__hit__hit_type"),
        ENTRIES_PER_PAGE,
    ).get_page(request.GET.get("page"))
    return render(
        request, "marketplace/requester/statement.html", {"requester": requester, "page": page}
    )


def _overview(requester: Requester) -> dict[str, object]:
    return {
        "requester": requester,
        "available_usd": ledger.balance_of(ledger.available_account(requester)),
        "held_usd": ledger.balance_of(ledger.held_account(requester)),
        "keys": AccessKey.objects.filter(requester=requester).order_by("-pk"),
        "endpoint_url": f"{settings.SITE_URL}/requester",
        "form": KeyForm(),
        "more_time": MoreTimeForm(instance=requester),
        "problem_reports": ProblemReport.objects.filter(assignment__hit__requester=requester)
        .select_related("assignment__hit")
        .order_by("-pk")[:REPORTS_LISTED],
    }
