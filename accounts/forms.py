from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm, ResetPasswordForm as AnyAddressForm
from django import forms
from django.forms import Field
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import Scope
from accounts.tokens import DAYS


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password, under the field names that HTML forms of this site always had."""

    fields: dict[str, Field]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        username = self.fields.pop("login")
        username.widget.attrs |= {"autofocus": True, "autocapitalize": "none"}
        self.fields = {"username": username, **self.fields}
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)

    def user_credentials(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("username", "password")}

    def clean(self) -> dict[str, Any]:
        self.cleaned_data["login"] = self.cleaned_data.get("username", "")
        cleaned: dict[str, Any] = super().clean()
        return cleaned


class NewPasswordForm(ChangePasswordForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)
            field.widget.attrs["class"] = "form-control"


class ResetPasswordForm(AnyAddressForm):  # type: ignore[misc]
    """An e-mail address; only one that its owner has confirmed opens an account."""

    def clean_email(self) -> str:
        """Find whose it is, without saying so."""
        email: str = self.cleaned_data["email"]
        self.users = list(
            User.objects.filter(
                is_active=True, emailaddress__email__iexact=email, emailaddress__verified=True
            )
        )
        return email


def _days(n: int) -> Any:
    """The words for a number of days, in the language of whoever reads them."""
    return format_lazy(_("{n} days"), n=n)


class TokenForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("What will use it, such as “nightly export”.")
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
        choices=[(days, _days(days)) for days in DAYS],
        initial=90,
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may do, as far as the role allows"),
        choices=Scope.choices,
        initial=[Scope.READ],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    @property
    def values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("name", "days", "scopes")}
