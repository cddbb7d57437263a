from typing import Any

from django import forms

from marketplace.models import Requester
from marketplace.money.fees import CENT
from marketplace.money.ledger import LARGEST_DEPOSIT_USD


class DepositForm(forms.Form):
    """Money that can't be taken out again: the requester's name is typed back."""

    amount_usd = forms.DecimalField(
        min_value=CENT, max_value=LARGEST_DEPOSIT_USD, decimal_places=2, label="Amount, $"
    )
    reference = forms.CharField(
        max_length=200, label="Reference", help_text="For the audit log, such as an invoice."
    )
    name = forms.CharField(label="The requester's name, once more")

    def __init__(self, *args: Any, requester: Requester, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.requester = requester

    def clean_name(self) -> str:
        """Refuse a deposit that is meant for somebody else."""
        name: str = self.cleaned_data["name"]
        if name.strip() != self.requester.name:
            raise forms.ValidationError(f"This is the page of {self.requester.name}.")
        return name
