"""Money is typed in one way, everywhere."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from console.forms import WageFloorForm
from error_codes import InvalidValue
from hits.pages.batch_changes import ConfirmationForm
from hits.pages.connection_forms import BudgetForm
from hits.pages.launch_form import LaunchForm
from hits.pages.review_forms import (
    BonusRuleForm,
    DecisionTextForm,
    SendForm,
)
from presentation.numbers import read_usd
from tests.codes import refused

FIELDS = [
    BudgetForm.base_fields["cap_usd"],
    LaunchForm.base_fields["reward_usd"],
    LaunchForm.base_fields["budget_usd"],
    BonusRuleForm.base_fields["amount_usd"],
    SendForm.base_fields["typed_usd"],
    ConfirmationForm.base_fields["expected_usd"],
    WageFloorForm.base_fields["wage_floor_usd"],
]


@pytest.mark.parametrize("field", [*FIELDS, None])
def test_an_amount_is_plain_digits(field):
    field = field or DecisionTextForm("bonus").fields["amount_usd"]
    assert field.clean("3.50") == Decimal("3.50")
    for text in ("1e3", "٣", "５.00", "-1", "1,000", "NaN", "0.005", "9" * 13):
        with pytest.raises(ValidationError):
            field.clean(text)


@pytest.mark.parametrize("text", ["1e3", "٣", "５.00", "-1", "", "1.", ".5", "1.000", "9" * 13])
def test_what_is_no_plain_amount_is_refused(text):
    with refused(InvalidValue, "not_an_amount"):
        read_usd(text)
