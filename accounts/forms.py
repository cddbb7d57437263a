from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm
from allauth.account.forms import ResetPasswordForm as AnyAddressForm
from django.forms import Field

from accounts.models import User


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
        """What is checked; also of a form whose name is missing."""
        return {name: self.cleaned_data[name] for name in ("username", "password")}

    def clean(self) -> dict[str, Any]:
        """Check the password, unless something is missing."""
        self.cleaned_data["login"] = self.cleaned_data.get("username", "")
        cleaned: dict[str, Any] = super().clean()
        return cleaned


class NewPasswordForm(ChangePasswordForm):  # type: ignore[misc]
    """The old password, and the new one twice."""

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
