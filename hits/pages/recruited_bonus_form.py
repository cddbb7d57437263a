"""The form of a participant's bonus: typed twice, and looked at twice where it is large."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Min
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hits.models import Assignment, Recruitment
from hits.pages.recruit_forms import (
    AMOUNT,
    CENT,
    MoneyField,
    ParticipantForm,
)
from hits.recruited_batches import displayed

# So many rewards are no slip of a digit any more.
LARGE_FROM_REWARDS = 10
# By which clocks of two machines may differ.
CLOCKS_DIFFER = timedelta(minutes=10)


class BonusForm(ParticipantForm):
    """A bonus for a participant, in the currency of the recruiter's account."""

    amount = MoneyField(label=gettext_lazy("Bonus"))
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=500,
        help_text=gettext_lazy("It stands in the audit log; the recruiter sends none."),
    )

    confirmed = MoneyField(
        label=gettext_lazy("The bonus once more"),
        help_text=gettext_lazy("It is paid within a minute, and can't be taken back."),
    )
    is_large = forms.BooleanField(
        label=gettext_lazy("It is meant to be as large as that"), required=False
    )

    def __init__(
        self, study: Recruitment, *args: Any, is_priced: bool = False, **options: Any
    ) -> None:
        """`is_priced` where it is asked what the bonus costs, and nothing is paid yet."""
        super().__init__(*args, **options)
        self._study, self._is_priced = study, is_priced
        for name in ("reason", "confirmed") if is_priced else ():
            self.fields[name].required = False
        if self.cost is not None:
            self.fields["confirmed"].label = _("What it costs, with the fees")

    @property
    def cost(self) -> Decimal | None:
        """What the bonus costs with the recruiter's fees, where it was asked of this amount."""
        text = str(self["amount"].value() or "").strip()
        quoted = self._study.quoted_bonus
        if quoted is None or not AMOUNT.fullmatch(text) or Decimal(text) != quoted:
            return None
        cost: Decimal | None = self._study.quoted_bonus_cost
        return None if cost is None else displayed(cost)

    @property
    def is_asked_twice(self) -> bool:
        """Whether it was so large that it is asked whether it is meant."""
        return self.is_bound and bool(self["is_large"].errors or self["is_large"].value())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if self._is_priced:
            return data
        amount, confirmed, cost = data.get("amount"), data.get("confirmed"), self.cost
        if amount is not None and cost is not None and confirmed not in (None, cost):
            text = _(
                "With its fees %(name)s asks %(cost)s %(currency)s. Type this amount to go on."
            )
            recruiter = self._study.recruiter
            facts = {"name": recruiter.name, "cost": cost, "currency": recruiter.currency}
            self.add_error("confirmed", ValidationError(text % facts, code="not_cost"))
        elif amount is not None and cost is None and confirmed not in (None, amount):
            text = _("This is not the amount above.")
            self.add_error("confirmed", ValidationError(text, code="not_amount"))
        elif amount is not None and not data["is_large"]:
            self._check_size(amount)
        return data

    def clean_worker_id(self) -> str:
        worker_id = super().clean_worker_id()
        answers = Assignment.objects.of(self._study.batch).filter(worker__worker_id=worker_id)
        if not answers.exists():
            text = _("Nobody of this Worker ID has answered in the batch.")
            raise ValidationError(text, code="unknown_worker")
        others = _accounts_before(self._study)
        if others and not answers.filter(accepted_at__gte=_begun_at(self._study)).exists():
            text = _(
                "This participant came before there was a study at %(name)s, by one at %(others)s, "
                "and an account pays its own participants alone. Pay the bonus there."
            )
            facts = {"name": self._study.recruiter.name, "others": ", ".join(others)}
            raise ValidationError(text % facts, code="other_account")
        return worker_id

    def clean_amount(self) -> Decimal:
        amount: Decimal = self.cleaned_data["amount"]
        if not amount or amount != amount.quantize(CENT):
            raise ValidationError(_("A bonus is an amount of whole pence or cents above 0."))
        return amount.quantize(CENT)

    def _check_size(self, amount: Decimal) -> None:
        reward, currency = self._study.reward, self._study.recruiter.currency
        if amount > LARGE_FROM_REWARDS * reward:
            text = _(
                "%(amount)s %(currency)s is more than %(n)s times the reward of %(reward)s "
                "%(currency)s, and %(name)s adds its fees. Tick this if it is meant."
            )
            facts = {"n": LARGE_FROM_REWARDS, "amount": f"{amount:.2f}", "reward": f"{reward:.2f}"}
            facts |= {"currency": currency, "name": self._study.recruiter.name}
            self.add_error("is_large", ValidationError(text % facts, code="large"))


def _begun_at(study: Recruitment) -> Any:
    """From when on participants may have come by a study of the batch at this account."""
    mine = Recruitment.objects.filter(batch=study.batch_id, recruiter=study.recruiter_id)
    return mine.aggregate(at=Min("created_at"))["at"] - CLOCKS_DIFFER


def _accounts_before(study: Recruitment) -> list[str]:
    """Other accounts at which the batch has had a study."""
    rows = Recruitment.objects.filter(batch=study.batch_id).exclude(recruiter=study.recruiter_id)
    drafted = rows.exclude(public_id="")
    return sorted(set(drafted.values_list("recruiter__name", flat=True)))
