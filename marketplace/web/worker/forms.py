from typing import Any

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from marketplace import clock
from marketplace.models import WorkerAccount
from marketplace.people.countries import country_choices, locale_error
from marketplace.people.enrolment import open_worker_account
from marketplace.users import User


class SignupForm(UserCreationForm[User]):
    """A name or an e-mail address, and a password."""

    class Meta:
        model = User
        fields = ("username",)
        labels = {"username": gettext_lazy("Name or e-mail address")}
        help_texts = {
            "username": gettext_lazy("Letters, digits and @ . + - _ only; requesters never see it.")
        }

    @transaction.atomic
    def enrol(self) -> User:
        """The new user, with a worker account."""
        user: User = self.save()
        open_worker_account(user=user)
        return user


class ProfileForm(forms.ModelForm[WorkerAccount]):
    """What the system qualifications go by."""

    country = forms.ChoiceField(
        choices=lambda: [("", _("Not stated")), *country_choices()],
        required=False,
        label=gettext_lazy("Country"),
        help_text=gettext_lazy("HITs may ask for workers of certain countries."),
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
    is_adult = forms.BooleanField(required=False, label=gettext_lazy("I am at least 18 years old"))

    class Meta:
        model = WorkerAccount
        fields = ("country", "subdivision")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["is_adult"].initial = self.instance.adult_confirmed_at is not None

    def clean(self) -> dict[str, Any]:
        """A part belongs to the country: what is in no list could meet no HIT's requirement."""
        cleaned = super().clean() or self.cleaned_data
        country, subdivision = cleaned.get("country", ""), cleaned.get("subdivision", "")
        if subdivision and not country:
            self.add_error("subdivision", _("Choose the country it is part of, too."))
        elif subdivision and (error := locale_error(country, subdivision)):
            self.add_error("subdivision", error)
        return cleaned

    def save(self, commit: bool = True) -> WorkerAccount:
        """Store the time at which a worker first said to be an adult."""
        is_adult = self.cleaned_data["is_adult"]
        before = self.instance.adult_confirmed_at
        self.instance.adult_confirmed_at = (before or clock.now()) if is_adult else None
        return super().save(commit)
