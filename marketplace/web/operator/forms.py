import secrets
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from marketplace.exceptions import (
    DepositSpent,
    DuplicateDeposit,
    InvalidAmount,
)
from marketplace.models import Deposit, Requester
from marketplace.money import deposits
from marketplace.money.amounts import parse_amount
from marketplace.money.fees import CENT
from marketplace.users import User

FORM_TOKEN_BYTES = 16


class AmountField(forms.CharField):
    """Dollars and cents, read as the commands read them."""

    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def clean(self, value: Any) -> Decimal:
        """The amount, at least a cent."""
        text: str = super().clean(value)
        try:
            amount_usd = parse_amount(text)
        except InvalidAmount as error:
            raise forms.ValidationError(str(error), code=error.code) from error
        if amount_usd < CENT:
            text = _("At least $%(amount)s.") % {"amount": CENT}
            raise forms.ValidationError(text, code="too_small")
        return amount_usd


def new_form_token() -> str:
    """What stands for one opening of a page, so that what it sends is done once."""
    return secrets.token_urlsafe(FORM_TOKEN_BYTES)


class DepositForm(forms.Form):
    """Money for a requester, whose name is typed back."""

    amount_usd = AmountField(label=gettext_lazy("Amount, $"))
    reference = forms.CharField(
        max_length=200,
        label=gettext_lazy("Reference"),
        help_text=gettext_lazy(
            "For the audit log, such as an invoice. Each stands for one deposit."
        ),
    )
    name = forms.CharField(label=gettext_lazy("The requester's name, once more"))
    form_token = forms.CharField(
        max_length=64, required=False, widget=forms.HiddenInput, initial=new_form_token
    )

    def __init__(self, *args: Any, requester: Requester, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.requester = requester

    def clean_name(self) -> str:
        """Refuse a deposit that is meant for another requester."""
        name: str = self.cleaned_data["name"]
        if name.strip() != self.requester.name:
            raise forms.ValidationError(
                _("This is the page of %(name)s.") % {"name": self.requester.name},
                code="other_requester",
            )
        return name

    def deposit(self, *, user: User) -> bool:
        """Make the deposit, once for all the times this form is sent; False where it is refused,
        and then the form says why."""
        values = self.cleaned_data
        try:
            deposits.deposit(
                requester=self.requester,
                amount_usd=values["amount_usd"],
                reference=values["reference"],
                form_token=values["form_token"] or None,
                user=user,
            )
        except (DuplicateDeposit, InvalidAmount) as error:
            self.add_error(None, forms.ValidationError(str(error), code=error.code))
            return False
        return True


class ReversalForm(forms.Form):
    """Why a deposit is taken out again."""

    reason = forms.CharField(max_length=200)
    problem: DepositSpent | None = None

    def reverse(self, *, deposit: Deposit, user: User) -> bool:
        """Take it out; False where that is refused, and then `problem` says why."""
        try:
            deposits.reverse_deposit(deposit=deposit, reason=self.cleaned_data["reason"], user=user)
        except DepositSpent as error:
            self.problem = error
            return False
        return True
