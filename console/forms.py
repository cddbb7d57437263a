"""What the pages' forms offer, and what they refuse, in words."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.adapter import TokenForm
from accounts.models import Team
from accounts.roles import Role
from presentation.numbers import read_usd


def offer_choices(form: forms.BaseForm, **choices: Sequence[tuple[Any, Any]]) -> None:
    for name, offered in choices.items():
        field = form.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = offered


def problems_of(form: forms.BaseForm) -> str:
    return " ".join(str(error) for errors in form.errors.values() for error in errors)


class PlainForm(forms.Form):
    """A form whose labels have no colon behind them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)


class UsdField(forms.DecimalField):
    def __init__(self, **options: Any) -> None:
        usual: dict[str, Any] = {"min_value": Decimal(0), "max_digits": 8, "decimal_places": 2}
        super().__init__(**usual | options)

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        if value in self.empty_values:
            return None
        if isinstance(value, Decimal):
            return value
        try:
            return read_usd(str(value))
        except ValueError as error:
            raise ValidationError(str(error), code="invalid") from error


class NewTeamForm(forms.Form):
    name = forms.CharField(label=_("Name of the team"), max_length=80)


class WageFloorForm(forms.ModelForm[Team]):
    class Meta:
        model = Team
        fields = ["wage_floor_usd"]
        field_classes = {"wage_floor_usd": UsdField}
        labels = {"wage_floor_usd": _("Least pay an hour, $")}
        widgets = {"wage_floor_usd": forms.TextInput(attrs={"inputmode": "decimal"})}


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"))

    def __init__(self, *args: Any, roles: Sequence[Role], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer_choices(self, role=[(role.value, role.label) for role in roles])

    @property
    def choice(self) -> Role:
        return Role(self.cleaned_data["role"])


class TeamTokenForm(RoleForm, TokenForm):
    field_order = ["name", "role", "days", "scopes"]

    def __init__(self, *args: Any, roles: Sequence[Role], **kwargs: Any) -> None:
        super().__init__(*args, roles=roles, **{"initial": {"role": Role.ANALYST}} | kwargs)

    @property
    def values(self) -> dict[str, Any]:
        return super().values | {"role": self.choice}


class InvitationForm(RoleForm):
    email = forms.EmailField(
        label=_("E-mail address"), widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )
    field_order = ["email", "role"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"initial": {"role": Role.RESEARCHER}} | kwargs)


class NewAccountForm(forms.Form):
    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        help_text=password_validation.password_validators_help_text_html,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class AuditLogForm(forms.Form):
    action = forms.ChoiceField(label=_("Action"), required=False)
    person = forms.ChoiceField(label=_("Person"), required=False)

    def __init__(
        self, *args: Any, actions: Sequence[str], names: Sequence[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        every = ("", _("all"))
        offer_choices(
            self,
            action=[every, *((value, value) for value in actions)],
            person=[every, *((value, value) for value in names)],
        )
