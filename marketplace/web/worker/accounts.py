from typing import Any

from allauth.account.utils import perform_login
from allauth.account.views import LoginView
from allauth.decorators import rate_limit
from django import forms
from django.conf import settings
from django.contrib import auth, messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.views import LogoutView
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from marketplace import clock
from marketplace.exceptions import ErasureRefused, InvalidParameter, require
from marketplace.hits import lifecycle
from marketplace.models import Hit, PaidBy, Payout, PayoutMethod, WorkerAccount
from marketplace.money import ledger
from marketplace.money.transfers import choose_method, details_of, next_payout_date
from marketplace.people import personal_data
from marketplace.people.enrolment import open_worker_account
from marketplace.people.erasure import erase_worker, erasure_obstacles
from marketplace.people.locations import (
    country_choices,
    language_name,
    locale_error,
    read_languages,
    state_location,
)
from marketplace.recruiting.sessions import latest_session
from marketplace.users import User
from marketplace.web.worker.access import (
    country_of,
    for_participants,
    in_own_browser,
    worker_of,
    worker_required,
)


class SignupForm(UserCreationForm[User]):
    class Meta:
        model = User
        fields = ("username",)
        labels = {"username": gettext_lazy("Name or e-mail address")}
        help_texts = {
            "username": gettext_lazy("Letters, digits and @ . + - _ only; requesters never see it.")
        }

    @transaction.atomic
    def enrol(self) -> User:
        user: User = self.save()
        open_worker_account(user=user)
        return user


class ProfileForm(forms.ModelForm[WorkerAccount]):
    country = forms.ChoiceField(
        choices=lambda: [("", _("Not stated")), *country_choices()],
        required=False,
        label=gettext_lazy("Country"),
        help_text=gettext_lazy(
            "HITs may ask for workers of certain countries. You can state it once."
        ),
    )
    subdivision = forms.RegexField(
        "^[A-Z0-9]{1,3}$",
        required=False,
        label=gettext_lazy("State or province"),
        help_text=gettext_lazy(
            "Its ISO 3166-2 code without the country's, such as CA for California."
        ),
        error_messages={"invalid": gettext_lazy("One to three capital letters or digits.")},
    )
    language_names = forms.CharField(
        required=False,
        max_length=1000,
        label=gettext_lazy("Languages you know well"),
        help_text=gettext_lazy(
            "Names in English or ISO 639 codes, with commas, such as English, German. "
            "HITs may ask for workers who know certain languages."
        ),
    )
    is_adult = forms.BooleanField(required=False, label=gettext_lazy("I am at least 18 years old"))

    class Meta:
        model = WorkerAccount
        fields = ("country", "subdivision")

    def __init__(self, *args: Any, network_country: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.network_country = network_country
        self.is_located = bool(self.instance.country)
        for name in ("country", "subdivision") if self.is_located else ():
            self.fields[name].disabled = True
            self.fields[name].help_text = _("Settled. If it is wrong, ask the operator.")
        self.fields["language_names"].initial = ", ".join(
            [language_name(code) for code in self.instance.languages]
        )
        self.fields["is_adult"].initial = self.instance.adult_confirmed_at is not None

    def clean_language_names(self) -> list[str]:
        codes, errors = read_languages(self.cleaned_data["language_names"])
        require(
            not errors,
            forms.ValidationError(
                [forms.ValidationError(error, code="unknown_language") for error in errors]
            ),
        )
        return codes

    def clean(self) -> dict[str, Any]:
        # A subdivision in no list could meet no HIT's requirement.
        cleaned = super().clean() or self.cleaned_data
        country, subdivision = cleaned.get("country", ""), cleaned.get("subdivision", "")
        if subdivision and not country:
            self.add_error(
                "subdivision",
                forms.ValidationError(
                    _("Choose the country it is part of, too."), code="missing_country"
                ),
            )
        elif subdivision and (error := locale_error(country, subdivision)):
            self.add_error("subdivision", forms.ValidationError(error, code="unknown_place"))
        return cleaned

    def save(self, commit: bool = True) -> WorkerAccount:
        """The time of the first adult confirmation is kept, and the country is stored only once."""
        values = self.cleaned_data
        if not self.is_located and values["country"]:
            self.instance.country = self.instance.subdivision = ""
            state_location(
                worker=self.instance,
                country=values["country"],
                subdivision=values["subdivision"],
                network_country=self.network_country,
            )
        self.instance.languages = self.cleaned_data["language_names"]
        is_adult = self.cleaned_data["is_adult"]
        before = self.instance.adult_confirmed_at
        self.instance.adult_confirmed_at = (before or clock.now()) if is_adult else None
        return super().save(commit)


class ProofForm(forms.Form):
    """Asks for the password or, of workers without one, for the Worker ID."""

    proof = forms.CharField(
        strip=False,
        label=gettext_lazy("Your password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, worker: WorkerAccount, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.worker = worker
        self.has_password = worker.user.has_usable_password()
        if not self.has_password:
            self.fields["proof"] = forms.CharField(label=gettext_lazy("Your Worker ID"))
        # After what it is the proof for.
        self.fields["proof"] = self.fields.pop("proof")

    def clean_proof(self) -> str:
        proof: str = self.cleaned_data["proof"]
        if self.has_password:
            require(
                self.worker.user.check_password(proof),
                forms.ValidationError(_("That is not your password."), code="wrong_password"),
            )
        elif proof != self.worker.worker_id:
            raise forms.ValidationError(_("That is not your Worker ID."), code="wrong_worker_id")
        return proof


class PayoutMethodForm(ProofForm):
    # Whoever finds a browser open must not redirect the money.
    method = forms.ChoiceField(
        choices=lambda: [
            (name, f"{name}: {details}" if details else name)
            for name, details in settings.MARKETPLACE_PAYOUT_METHODS.items()
        ],
        label=gettext_lazy("Method"),
    )
    details = forms.CharField(
        max_length=500,
        label=gettext_lazy("Details"),
        help_text=gettext_lazy("What the method asks for. Stored encrypted."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


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


class Logout(LogoutView):
    # Participants have no account to sign in to, so they go to the page that brings them back.
    next_page = "marketplace:login"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        worker = worker_of(request)
        left = latest_session(worker) if worker and worker.paid_by == PaidBy.RECRUITER else None
        response: HttpResponse = super().post(request, *args, **kwargs)
        return redirect("marketplace:session", left.public_id) if left else response


logout = Logout.as_view()


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
def profile(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What the marketplace's own qualifications go by.

    Access: workers, each their own.
    """
    posted = request.POST if request.method == "POST" else None
    form = ProfileForm(posted, instance=worker, network_country=country_of(request))
    if form.is_valid():
        try:
            form.save()
            messages.success(request, _("Your profile was saved."), extra_tags="saved")
        except InvalidParameter as refused:  # stated in another window meanwhile
            messages.error(request, str(refused), extra_tags=refused.code)
        return redirect("marketplace:profile")
    return render(request, "marketplace/profile.html", {"form": form, "worker": worker})


@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="reauthenticate")  # type: ignore[untyped-decorator]
@worker_required
def payout_method(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """How and when the worker is paid.

    Access: workers, each their own; a change asks for the password.
    """
    form = PayoutMethodForm(request.POST if request.method == "POST" else None, worker=worker)
    if form.is_valid():
        values = form.cleaned_data
        choose_method(worker=worker, method=values["method"], details=values["details"])
        messages.success(request, _("Your payout method was saved."), extra_tags="saved")
        return redirect("marketplace:payout_method")
    chosen = PayoutMethod.objects.filter(worker=worker).first()
    return render(
        request,
        "marketplace/payout_method.html",
        {
            "worker": worker,
            "form": form,
            "chosen": chosen,
            "ending": details_of(chosen)[-4:] if chosen else "",
            "balance_usd": ledger.balance_of(ledger.earnings_account(worker)),
            "last": Payout.objects.filter(worker=worker).order_by("-pk").first(),
            "next_date": next_payout_date(clock.now()),
        },
    )


def _next(request: HttpRequest) -> str:
    # Only an address on this site.
    address = request.POST.get("next") or request.GET.get("next") or ""
    is_here = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_here else reverse("marketplace:groups")


# What the marketplace knows of a worker: the privacy page, and the worker's own data as files.


@login_not_required
@require_safe
def privacy(request: HttpRequest) -> HttpResponse:
    """What is kept about workers, why, for how long, and who reads it.

    Access: anybody.
    """
    return render(
        request,
        "marketplace/privacy.html",
        {
            "worker": worker_of(request),
            "browsers_keep_days": settings.BROWSERS_KEEP_DAYS,
            "messages_keep_days": settings.MESSAGES_KEEP_DAYS,
        },
    )


@require_safe
@worker_required
@for_participants
@in_own_browser
def your_data(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Where a worker's data can be downloaded.

    Access: workers, each their own.
    """
    return render(request, "marketplace/your_data.html", {"worker": worker})


@require_safe
@worker_required
@for_participants
@in_own_browser
def as_json(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """The worker's data, for programs.

    Access: workers, each their own.
    """
    options = {"indent": 2, "ensure_ascii": False}
    return _as_file(
        JsonResponse(personal_data.export(worker), json_dumps_params=options), worker, "json"
    )


@require_safe
@worker_required
@for_participants
@in_own_browser
def as_page(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """The worker's data, to be read.

    Access: workers, each their own.
    """
    exported: dict[str, Any] = personal_data.export(worker)
    return _as_file(
        render(request, "marketplace/your_data_file.html", {"export": exported}), worker, "html"
    )


@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="reauthenticate")  # type: ignore[untyped-decorator]
@worker_required
@for_participants
@in_own_browser
def erase(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Erase what says who the worker is, and end the account.

    Access: workers, each their own, with their password.
    """
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
    form = ProofForm(request.POST if request.method == "POST" else None, worker=worker)
    if form.is_valid():
        try:
            erase_worker(worker)
        except ErasureRefused as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            auth.logout(request)
            return redirect("marketplace:erased")
    context = {"worker": worker, "form": form, "obstacles": erasure_obstacles(worker)}
    return render(request, "marketplace/erase.html", context)


@login_not_required
@require_safe
def erased(request: HttpRequest) -> HttpResponse:
    """That it is done.

    Access: anybody.
    """
    return render(request, "marketplace/erased.html")


def _as_file(response: HttpResponse, worker: WorkerAccount, suffix: str) -> HttpResponse:
    name = f"worker-{worker.worker_id}.{suffix}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
