"""The forms of the review desk: decisions, rules, reasons, and sending."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from console.forms import UsdField
from hits.contacts import LONGEST_SUBJECT, LONGEST_TEXT
from hits.decisions import LONGEST_FEEDBACK
from hits.drafts import SHORTEST_PARTICIPANTS_REASON, Action, PaidPart
from hits.models import RejectionReason

CONTROL = {"class": "form-control"}
DEFAULT_REASONS = (
    (
        gettext_lazy("Too fast"),
        gettext_lazy(
            "The work was handed in much faster than it can be read, and the answers do not fit "
            "what is on the page."
        ),
    ),
    (
        gettext_lazy("One answer throughout"),
        gettext_lazy(
            "The same answer was given to everything on the page, also where others' answers "
            "differ widely."
        ),
    ),
    (
        gettext_lazy("Reason missing"),
        gettext_lazy(
            "The reason that the instructions ask for is missing, or is about something else."
        ),
    ),
)
# A participant has no page to appeal on: the recruiter passes on what they write.
APPEAL = gettext_lazy("If we are mistaken, please appeal: we will look again.")
WRITE = gettext_lazy("If we are mistaken, please write to us: we will look again.")


def reasons_of(study: Study, *, is_participant: bool = False) -> list[tuple[str, str]]:
    """The team's templates of reasons; the ones to begin with where it has none."""
    own = RejectionReason.objects.filter(team=study.team_id) if study.team_id else []
    rows = [(reason.title, reason.text) for reason in own]
    closing = WRITE if is_participant else APPEAL
    return rows or [(str(title), f"{text} {closing}") for title, text in DEFAULT_REASONS]


class DecisionTextForm(forms.Form):
    """What goes with a decision: a text, and an amount or a subject where it has one."""

    def __init__(
        self,
        action: str,
        *args: Any,
        part: PaidPart | None = None,
        is_participant: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.action = action
        if action == Action.MESSAGE:
            self.fields["subject"] = forms.CharField(
                label=_("Subject"), max_length=LONGEST_SUBJECT, widget=forms.TextInput(CONTROL)
            )
        if action in (Action.PART_PAY, Action.BONUS):
            self.fields["amount_usd"] = UsdField(
                label=_("Amount, US dollars"),
                widget=forms.NumberInput(CONTROL | {"step": "0.01", "min": "0.01"}),
            )
        if action == Action.OVERRIDE and part is not None:
            self.fields["amount_usd"] = UsdField(
                label=_(
                    "${part} of the reward was paid already, and this adds the whole: type "
                    "${total} to confirm it"
                ).format(part=part.amount_usd, total=part.with_reward_usd),
                widget=forms.TextInput(CONTROL | {"inputmode": "decimal", "autocomplete": "off"}),
            )
        self.fields["text"] = _text_field(action)
        if action == Action.REJECT and is_participant:
            self.fields["text"].label = _(
                "Reason, which the participant reads: at least {n} characters. All of the "
                "participant’s items are rejected by it"
            ).format(n=SHORTEST_PARTICIPANTS_REASON)
        next(iter(self.fields.values())).widget.attrs["autofocus"] = True


def _text_field(action: str) -> forms.CharField:
    labels = {
        Action.REJECT: _("Reason, which the worker reads"),
        Action.PART_PAY: _("Reason, which the worker reads"),
        Action.BONUS: _("Reason, which the worker reads"),
        Action.MESSAGE: _("Message"),
        Action.BLOCK: _("Reason, for the team and the marketplace"),
        Action.OVERRIDE: _("Feedback for the worker (optional)"),
    }
    is_feedback = action in (Action.REJECT, Action.PART_PAY, Action.OVERRIDE)
    return forms.CharField(
        label=labels.get(Action(action), _("Why (optional)")),
        required=action not in (Action.OVERRIDE, Action.UNBLOCK, Action.APPROVE),
        max_length=LONGEST_FEEDBACK if is_feedback else LONGEST_TEXT,
        widget=forms.Textarea(CONTROL | {"rows": 3}),
    )


YEAR_HOURS = 366 * 24


class ApproveRuleForm(forms.Form):
    """Approve what has no flag and waits longer than so many hours."""

    hours = forms.FloatField(
        label=gettext_lazy("Waiting for at least, hours"),
        min_value=0,
        max_value=YEAR_HOURS,
        initial=24,
        widget=forms.NumberInput(CONTROL | {"min": "0", "step": "any"}),
    )


class RejectRuleForm(forms.Form):
    divisor = forms.FloatField(
        label=gettext_lazy("Faster than the median time divided by"),
        min_value=2,
        max_value=1000,
        initial=6,
        widget=forms.NumberInput(CONTROL | {"min": "2", "step": "any"}),
    )
    text = forms.CharField(
        label=gettext_lazy("Reason, which the worker reads"),
        max_length=LONGEST_FEEDBACK,
        widget=forms.Textarea(CONTROL | {"rows": 3}),
    )


class BonusRuleForm(forms.Form):
    least_approved = forms.IntegerField(
        label=gettext_lazy("Approved assignments, at least"),
        min_value=1,
        max_value=1_000_000,
        initial=10,
        widget=forms.NumberInput(CONTROL | {"min": "1"}),
    )
    amount_usd = UsdField(
        label=gettext_lazy("Amount for each worker, US dollars"),
        widget=forms.NumberInput(CONTROL | {"step": "0.01", "min": "0.01"}),
    )
    text = forms.CharField(
        label=gettext_lazy("Reason, which the worker reads"),
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(CONTROL | {"rows": 3}),
    )


class ReasonForm(forms.ModelForm[RejectionReason]):
    class Meta:
        model = RejectionReason
        fields = ("title", "text")
        widgets = {
            "title": forms.TextInput(CONTROL),
            "text": forms.Textarea(CONTROL | {"rows": 3}),
        }


class NoteForm(forms.Form):
    note = forms.CharField(
        label=gettext_lazy("Note, for the team alone"),
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(CONTROL | {"rows": 2}),
    )


class SendForm(forms.Form):
    """The summary that was read, and the amount where it is spent elsewhere."""

    digest = forms.CharField(widget=forms.HiddenInput)
    typed_usd = UsdField(
        label=gettext_lazy("Type the amount that is spent elsewhere, in US dollars"),
        required=False,
        max_digits=10,
        widget=forms.TextInput(CONTROL | {"inputmode": "decimal", "autocomplete": "off"}),
    )
