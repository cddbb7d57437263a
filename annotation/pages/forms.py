"""What the pages of annotation ask for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.flags import LONGEST_REASON
from annotation.label_sets import METHODS_AT_LEVEL
from annotation.models import Question, Study
from console.glossary import code_name

# A scale of so few steps is chosen from; a longer one is typed.
MOST_CHOICES = 12


class FlagForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Why it is in doubt"),
        max_length=LONGEST_REASON,
        widget=forms.TextInput(attrs={"class": "form-control"}),
    )


class DecisionForm(forms.Form):
    note = forms.CharField(
        label=gettext_lazy("Why (optional)"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
    )

    def __init__(
        self, question: Question, *args: Any, takes_focus: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs | {"label_suffix": ""})
        self.fields["value"] = _value_field(question)
        if takes_focus:
            self.fields["value"].widget.attrs["autofocus"] = True
        self.order_fields(["value", "note"])

    @property
    def is_chosen(self) -> bool:
        """Whether the value is one of a few to choose from."""
        return isinstance(self.fields["value"], forms.ChoiceField)


def _value_field(question: Question) -> forms.Field:
    steps = _steps(question)
    if steps:
        widget = forms.RadioSelect(attrs={"class": "form-check-input"})
        return forms.ChoiceField(label=_("Decision"), choices=steps, widget=widget)
    low, high = question.scale_min, question.scale_max
    return forms.FloatField(
        label=_("Decision, %(low)s to %(high)s") % {"low": f"{low:g}", "high": f"{high:g}"},
        min_value=low,
        max_value=high,
        widget=forms.NumberInput(attrs={"class": "form-control", "step": "any"}),
    )


def _steps(question: Question) -> list[tuple[str, str]]:
    """The values of a short scale as they are stored and as they are told; else none."""
    if question.categories:
        return [(str(position), str(name)) for position, name in enumerate(question.categories)]
    low, high = question.scale_min, question.scale_max
    is_stepped = question.level == Question.Level.ORDINAL and low.is_integer()
    if not is_stepped or high - low >= MOST_CHOICES:
        return []
    return [(str(step), str(step)) for step in range(int(low), int(high) + 1)]


class LabelSetForm(forms.Form):
    rule = forms.ChoiceField(
        label=gettext_lazy("Question and method"),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    round = forms.TypedChoiceField(
        label=gettext_lazy("Round"), coerce=int, widget=forms.Select(attrs={"class": "form-select"})
    )
    with_flagged = forms.BooleanField(
        label=gettext_lazy("Count flagged submissions"),
        required=False,
        initial=True,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )
    with_adjudications = forms.BooleanField(
        label=gettext_lazy("Decisions replace judgments"),
        required=False,
        initial=True,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, study: Study, rounds: list[int], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"label_suffix": ""})
        self.questions = {question.name: question for question in study.questions.all()}
        self.fields["rule"].choices = [  # type: ignore[attr-defined]
            (question.name, _methods(question)) for question in self.questions.values()
        ]
        self.fields["round"].choices = [(n, n) for n in rounds or [1]]  # type: ignore[attr-defined]

    @property
    def arguments(self) -> dict[str, Any]:
        data = self.cleaned_data
        method, _, question = data["rule"].partition(":")
        rest = {name: data[name] for name in ("round", "with_flagged", "with_adjudications")}
        return {"question": question, "method": method, **rest}


def _methods(question: Question) -> list[tuple[str, str]]:
    level = Question.Level(question.level)
    return [
        (f"{method}:{question.name}", f"{question.name}: {code_name(method)}")
        for method in METHODS_AT_LEVEL[level]
    ]
