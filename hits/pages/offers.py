import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Min
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import require
from hits.models import Assignment, Batch, Hit, Recruiter, Recruitment
from hits.recruited_batches import displayed, judgments_wanted, places_wanted
from hits.wages import CENT, Duration

MOST_ITEMS, MOST_PLACES, MOST_MINUTES = 100, 100_000, 700
PROPOSED_ITEMS = 10
# What Prolific itself recommends is more than its least; it says so where it is too little.
PROPOSED_HOURLY = Decimal(9)
AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,4})?")
MOST_FILTERS, LONGEST_FILTER = 30, 1000
FILTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\s*=\s*\S.*")
# What Prolific lists a study under.
LABELS = (
    ("annotation", gettext_lazy("Annotation")),
    ("ai_annotation", gettext_lazy("AI: annotation")),
    ("ai_evaluation", gettext_lazy("AI: evaluation")),
    ("ai_fact_checking", gettext_lazy("AI: fact checking")),
    ("ai_reasoning", gettext_lazy("AI: reasoning")),
    ("ai_safety", gettext_lazy("AI: safety")),
    ("ai_other", gettext_lazy("AI: other")),
    ("decision_making_task", gettext_lazy("Decision-making task")),
    ("survey", gettext_lazy("Survey")),
    ("writing_task", gettext_lazy("Writing task")),
    ("interview", gettext_lazy("Interview")),
    ("other", gettext_lazy("Other")),
)
MORE = ("labels", "screen_out_reward", "screen_out_places", "excluded")
DEVICES = (
    ("desktop", gettext_lazy("Computers")),
    ("tablet", gettext_lazy("Tablets")),
    ("mobile", gettext_lazy("Phones")),
)


class MoneyField(forms.CharField):
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def clean(self, value: Any) -> Any:
        text = super().clean(value).strip()
        if not text:
            return None
        require(AMOUNT.fullmatch(text), ValidationError(_("Type an amount such as 12.50.")))
        return Decimal(text)


class EarlierField(forms.ModelMultipleChoiceField[Recruitment]):
    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError as error:  # a number that is no row's in any database
            raise ValidationError(_("Choose studies of the list.")) from error

    def label_from_instance(self, obj: Any) -> str:
        return _("batch {pk}, round {round}: {title}").format(
            pk=obj.batch.pk, round=obj.batch.round, title=obj.batch.title
        )


class OfferForm(forms.Form):
    recruiter = forms.ModelChoiceField(
        Recruiter.objects.none(), label=gettext_lazy("Recruiter"), empty_label=None
    )
    items = forms.IntegerField(
        label=gettext_lazy("Items for one participant"), min_value=1, max_value=MOST_ITEMS
    )
    minutes = forms.IntegerField(
        label=gettext_lazy("Minutes for all of them"),
        min_value=1,
        max_value=MOST_MINUTES,
        help_text=gettext_lazy("About as long as they take; more than twice as long is allowed."),
    )
    reward = MoneyField(
        label=gettext_lazy("Reward of a participant"),
        help_text=gettext_lazy("For all of it, in the currency of the account."),
    )
    places = forms.IntegerField(
        label=gettext_lazy("Participants"),
        min_value=1,
        max_value=MOST_PLACES,
        required=False,
    )
    devices = forms.MultipleChoiceField(
        label=gettext_lazy("Devices"),
        choices=DEVICES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None chosen: any."),
    )
    filters = forms.CharField(
        label=gettext_lazy("Whom the recruiter invites"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Prolific’s filters by their names there, one a line: age = 18..65, or handedness = "
            "1, 2. Empty: whoever it has. What it refuses of them is said once the draft is sent."
        ),
    )
    labels = forms.MultipleChoiceField(
        label=gettext_lazy("Listed there as"),
        choices=LABELS,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None chosen: annotation."),
    )
    screen_out_reward = MoneyField(
        label=gettext_lazy("Pay of who may not take part"),
        required=False,
        help_text=gettext_lazy(
            "For who is blocked or lacks a qualification, and less than the reward. Empty: they "
            "are asked to return their place, and get nothing."
        ),
    )
    screen_out_places = forms.IntegerField(
        label=gettext_lazy("For so many of them at most"),
        min_value=1,
        max_value=MOST_PLACES,
        required=False,
        help_text=gettext_lazy("Then Prolific pauses the study. The price has all of it in."),
    )
    excluded = EarlierField(
        Recruitment.objects.none(),
        label=gettext_lazy("Not for participants of"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, batch: Batch, data: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(data, label_suffix="", **options)
        recruiters = Recruiter.objects.usable().filter(connection=batch.connection_id)
        earlier = Recruitment.objects.of(batch.study).exclude(public_id="").exclude(batch=batch)
        earlier = earlier.filter(recruiter__connection=batch.connection_id)
        self._batch, self._n_hits = batch, Hit.objects.of(batch).count()
        n_judgments = judgments_wanted(batch)
        self.fields["places"].help_text = ngettext(
            "%(n)s judgment is wanted. Empty: as many as that needs; where it is no multiple of "
            "the items for one participant, the last gets the rest, for the same reward.",
            "%(n)s judgments are wanted. Empty: as many as they need; where they are no multiple "
            "of the items for one participant, the last gets the rest, for the same reward.",
            n_judgments,
        ) % {"n": f"{n_judgments:,}"}
        self.fields["recruiter"].queryset = recruiters  # type: ignore[attr-defined]
        self.fields["excluded"].queryset = earlier  # type: ignore[attr-defined]

    @property
    def offered(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in MORE]

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in MORE]

    @property
    def is_more_said(self) -> bool:
        return any(field.value() or field.errors for field in self.more)

    def clean_items(self) -> int:
        items: int = self.cleaned_data["items"]
        require(
            items <= self._n_hits,
            ValidationError(
                ngettext(
                    "The batch has %(n)s item, and nobody does one twice.",
                    "The batch has %(n)s items, and nobody does one twice.",
                    self._n_hits,
                )
                % {"n": f"{self._n_hits:,}"}
            ),
        )
        return items

    def clean_reward(self) -> Decimal:
        reward: Decimal = self.cleaned_data["reward"]
        require(
            reward and reward == reward.quantize(CENT),
            ValidationError(_("The reward is an amount of whole pence or cents above 0.")),
        )
        return reward

    def clean_filters(self) -> list[str]:
        lines = [line.strip() for line in self.cleaned_data["filters"].splitlines()]
        lines = [line for line in lines if line]
        for line in lines:
            require(
                len(line) <= LONGEST_FILTER and FILTER.fullmatch(line),
                ValidationError(
                    _("A filter is a name and its values, as in age = 18..65, not “%(line)s”.")
                    % {"line": line[:80]}
                ),
            )
        require(
            len(lines) <= MOST_FILTERS,
            ValidationError(_("A study has at most %(n)s filters.") % {"n": MOST_FILTERS}),
        )
        return lines

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        places, items = data.get("places"), data.get("items")
        if places and items and places > (needed := places_wanted(self._batch, items)):
            self.add_error(
                "places",
                ValidationError(too_many(judgments_wanted(self._batch), needed), code="too_many"),
            )
        pay, n_paid = data.get("screen_out_reward"), data.get("screen_out_places")
        if "screen_out_reward" in self.errors or "screen_out_places" in self.errors:
            return data
        if pay is not None and not n_paid:
            self.add_error("screen_out_places", _("Say how many get it at most."))
        elif n_paid and pay is None:
            self.add_error("screen_out_reward", _("Say how much each of them gets."))
        elif pay is not None and not (0 < pay < data.get("reward", pay + 1)):
            self.add_error("screen_out_reward", _("It is more than 0 and less than the reward."))
        elif pay is not None and pay != pay.quantize(CENT):
            self.add_error("screen_out_reward", _("It is an amount of whole pence or cents."))
        return data

    @property
    def offer(self) -> dict[str, Any]:
        data = self.cleaned_data
        numbers = {name: data[name] or 0 for name in ("places", "screen_out_places")}
        return data | numbers | {"reward": data["reward"].quantize(CENT)}


class ActionForm(forms.Form):
    """A request about a study; `number` is how many had been made when its page was opened."""

    number = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


class PriceForm(ActionForm):
    places = forms.IntegerField(
        label=gettext_lazy("Participants in all"), min_value=1, max_value=MOST_PLACES
    )


class ParticipantForm(ActionForm):
    worker_id = forms.CharField(
        label=gettext_lazy("Participant, by Worker ID"),
        max_length=64,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class AmountForm(ActionForm):
    confirmed = MoneyField(label=gettext_lazy("Type the amount to confirm"))

    def __init__(self, cost: Decimal | None, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cost = cost

    def clean_confirmed(self) -> Decimal:
        amount: Decimal = self.cleaned_data["confirmed"]
        if self._cost is None or amount not in (self._cost, displayed(self._cost)):
            raise ValidationError(_("This is not the amount above."))
        return amount


def proposed(batch: Batch, duration: Duration) -> dict[str, Any]:
    n_items = even_share(
        max(1, min(PROPOSED_ITEMS, Hit.objects.of(batch).published().count())),
        judgments_wanted(batch),
    )
    minutes = max(1, round(n_items * duration.typical_seconds / 60))
    reward = max(CENT, (PROPOSED_HOURLY * minutes / 60).quantize(CENT))
    return {
        "items": n_items,
        "minutes": min(minutes, MOST_MINUTES),
        "reward": f"{reward:.2f}",
        "excluded": list(
            Recruitment.objects.of(batch.study)
            .exclude(public_id="")
            .exclude(batch=batch)
            .filter(batch__round__in=batch.excluded_rounds)
            .values_list("pk", flat=True)
        ),
    }


def even_share(most: int, n_judgments: int) -> int:
    return next((n for n in range(most, most // 2, -1) if n_judgments % n == 0), most)


def wanted_help(n_judgments: int, n_participants: int) -> str:
    text = ngettext("%(n)s judgment is not in yet", "%(n)s judgments are not in yet", n_judgments)
    return ngettext(
        "%(judgments)s: work for %(n)s participant, those at work included.",
        "%(judgments)s: work for %(n)s participants, those at work included.",
        n_participants,
    ) % {"judgments": text % {"n": f"{n_judgments:,}"}, "n": f"{n_participants:,}"}


def too_many(n_judgments: int, n_participants: int) -> str:
    text = _("Whoever else came would find nothing to do.")
    return f"{wanted_help(n_judgments, n_participants)} {text}"


# So many rewards are no slip of a digit any more.
LARGE_FROM_REWARDS = 10
# By which clocks of two machines may differ.
CLOCKS_DIFFER = timedelta(minutes=10)


class BonusForm(ParticipantForm):
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
        super().__init__(*args, **options)
        self._study, self._is_priced = study, is_priced
        for name in ("reason", "confirmed") if is_priced else ():
            self.fields[name].required = False
        if self.cost is not None:
            self.fields["confirmed"].label = _("What it costs, with the fees")

    @property
    def cost(self) -> Decimal | None:
        """With the recruiter's fees; None unless the cost of this very amount was asked before."""
        text = str(self["amount"].value() or "").strip()
        quoted = self._study.quoted_bonus
        if quoted is None or not AMOUNT.fullmatch(text) or Decimal(text) != quoted:
            return None
        cost: Decimal | None = self._study.quoted_bonus_cost
        return None if cost is None else displayed(cost)

    @property
    def is_asked_twice(self) -> bool:
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
            self.add_error(
                "confirmed", ValidationError(_("This is not the amount above."), code="not_amount")
            )
        elif amount is not None and not data["is_large"]:
            self._check_size(amount)
        return data

    def clean_worker_id(self) -> str:
        worker_id: str = self.cleaned_data["worker_id"]
        answers = Assignment.objects.of(self._study.batch).filter(worker__worker_id=worker_id)
        require(
            answers.exists(),
            ValidationError(
                _("Nobody of this Worker ID has answered in the batch."), code="unknown_worker"
            ),
        )
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
        require(
            amount and amount == amount.quantize(CENT),
            ValidationError(_("A bonus is an amount of whole pence or cents above 0.")),
        )
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
    mine = Recruitment.objects.filter(batch=study.batch_id, recruiter=study.recruiter_id)
    return mine.aggregate(at=Min("created_at"))["at"] - CLOCKS_DIFFER


def _accounts_before(study: Recruitment) -> list[str]:
    return sorted(
        set(
            Recruitment.objects.filter(batch=study.batch_id)
            .exclude(recruiter=study.recruiter_id)
            .exclude(public_id="")
            .values_list("recruiter__name", flat=True)
        )
    )
