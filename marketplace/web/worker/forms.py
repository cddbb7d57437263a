from typing import Any

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.db import transaction
from django.utils.translation import gettext as _, gettext_lazy

from marketplace import clock
from marketplace.models import WorkerAccount
from marketplace.money.payouts import choose_method, offered_methods
from marketplace.people.enrolment import open_worker_account
from marketplace.people.locations import (
    country_choices,
    language_name,
    locale_error,
    read_languages,
    state_location,
)
from marketplace.users import User


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
        names = [language_name(code) for code in self.instance.languages]
        self.fields["language_names"].initial = ", ".join(names)
        self.fields["is_adult"].initial = self.instance.adult_confirmed_at is not None

    def clean_language_names(self) -> list[str]:
        codes, errors = read_languages(self.cleaned_data["language_names"])
        if errors:
            raise forms.ValidationError(
                [forms.ValidationError(error, code="unknown_language") for error in errors]
            )
        return codes

    def clean(self) -> dict[str, Any]:
        # A subdivision in no list could meet no HIT's requirement.
        cleaned = super().clean() or self.cleaned_data
        country, subdivision = cleaned.get("country", ""), cleaned.get("subdivision", "")
        if subdivision and not country:
            text = _("Choose the country it is part of, too.")
            self.add_error("subdivision", forms.ValidationError(text, code="missing_country"))
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
            if not self.worker.user.check_password(proof):
                raise forms.ValidationError(_("That is not your password."), code="wrong_password")
        elif proof != self.worker.worker_id:
            raise forms.ValidationError(_("That is not your Worker ID."), code="wrong_worker_id")
        return proof


class PayoutMethodForm(ProofForm):
    # Whoever finds a browser open must not redirect the money.
    method = forms.ChoiceField(
        choices=lambda: [
            (name, f"{name}: {details}" if details else name)
            for name, details in offered_methods().items()
        ],
        label=gettext_lazy("Method"),
    )
    details = forms.CharField(
        max_length=500,
        label=gettext_lazy("Details"),
        help_text=gettext_lazy("What the method asks for. Stored encrypted."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def save(self) -> None:
        values = self.cleaned_data
        choose_method(worker=self.worker, method=values["method"], details=values["details"])
