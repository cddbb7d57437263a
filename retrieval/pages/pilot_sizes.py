from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.uploads import plain_file_name
from console.chart_values import Axis, Span
from retrieval.exceptions import FileFaults
from retrieval.pilots import MOST_ASSESSORS, EqualCost, Pilot, plans_at_equal_cost, read_pilot
from stats.inference.generalisability import N_DRAWS, Plan, Reliability

MOST_BYTES, MOST_BUDGET = 2 * 1024 * 1024, 1_000_000_000
# The command's, so that both draw the same.
SEED = 0
COMPONENTS: dict[str, str | Promise] = {
    "system": gettext_lazy("systems"),
    "topic": gettext_lazy("topics"),
    "assessor": gettext_lazy("assessors"),
    "system_topic": gettext_lazy("systems by topics"),
    "system_assessor": gettext_lazy("systems by assessors"),
    "topic_assessor": gettext_lazy("topics by assessors"),
    "residual": gettext_lazy("what is left"),
}


def _number(label: Any, initial: float, **options: Any) -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, initial=initial, widget=widget, **options)


class PilotForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("Values of the pilot"),
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.tab"}),
        help_text=gettext_lazy(
            "CSV or TSV with the columns system, topic, value and, if there were several, "
            "assessor: a value for each of each, of 2 MiB at most. It is read and not kept: choose "
            "it again to ask again."
        ),
        allow_empty_file=True,
    )
    budget = _number(
        gettext_lazy("Budget"),
        400,
        min_value=0,
        max_value=MOST_BUDGET,
        help_text=gettext_lazy("In judgments of a topic by one assessor, each of which costs 1."),
    )
    topic_cost = _number(
        gettext_lazy("Cost of a topic besides"),
        0,
        min_value=0,
        max_value=MOST_BUDGET,
        help_text=gettext_lazy(
            "However many judge it: to write it, to pool it. 2 if that costs as much as two "
            "judgments."
        ),
    )
    confidence = _number(gettext_lazy("Confidence"), 0.95, min_value=0, max_value=1)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)

    def clean_file(self) -> Pilot:
        """The values of the file, or every fault of it by line, as the command says them."""
        file = self.cleaned_data["file"]
        if file.size > MOST_BYTES:
            text = _("It has more than {n} MiB.").format(n=MOST_BYTES // 1024**2)
            raise forms.ValidationError(text, code="too_large")
        with TemporaryDirectory(prefix="assay-pilot-") as folder:
            path = Path(folder) / plain_file_name(file.name)
            path.write_bytes(file.read())
            try:
                return read_pilot(path)
            except FileFaults as refused:
                # Its last line says that nothing was computed, as the page does above.
                faults = str(refused).splitlines()[:-1]
                raise forms.ValidationError(
                    [forms.ValidationError(fault, code="fault") for fault in faults]
                ) from None


@dataclass(frozen=True)
class PlanRow:
    plan: Plan
    cost: str
    is_best: bool
    span: Span | None

    @property
    def dependability(self) -> str:
        return _figure(self.plan.dependability.value)

    @property
    def dependability_interval(self) -> str:
        return _interval(self.plan.dependability)

    @property
    def generalizability(self) -> str:
        return _figure(self.plan.generalizability.value)

    @property
    def generalizability_interval(self) -> str:
        return _interval(self.plan.generalizability)

    @property
    def se(self) -> str:
        return f"{self.plan.se_of_difference:.4g}"


@dataclass(frozen=True)
class PilotAnswer:
    plans: EqualCost

    axis = Axis(0.0, 1.0, 0.25)

    @property
    def sentence(self) -> str:
        one = self.plans.best
        text = _("Most dependable for {budget}: {plan} (Φ {value}, {interval} {limits}).")
        if self.plans.is_at_edge:
            text = _(
                "Most dependable for {budget} of plans with up to {most} assessors: {plan} (Φ "
                "{value}, {interval} {limits})."
            )
        return text.format(
            most=MOST_ASSESSORS,
            budget=f"{self.plans.budget:,g}",
            plan=_plan_text(one),
            value=_figure(one.dependability.value),
            interval=self.interval_title,
            limits=_interval(one.dependability),
        )

    @property
    def details(self) -> list[str]:
        plans = self.plans.result.plans
        least = min(plans, key=lambda plan: plan.dependability.value)
        if len(plans) == 1:
            return [_("No other plan can be made of this pilot and budget.")]
        text = _("The least dependable at that cost: {plan} (Φ {value}).")
        value = _figure(least.dependability.value)
        return [text.format(plan=_plan_text(least), value=value)]

    @property
    def interval_title(self) -> str:
        return _("{confidence} % interval").format(confidence=f"{self.plans.confidence * 100:g}")

    @property
    def rows(self) -> list[PlanRow]:
        best = self.plans.best
        return [
            PlanRow(plan, f"{self.plans.cost(plan):,g}", plan == best, self._span(plan))
            for plan in self.plans.result.plans
        ]

    def _span(self, plan: Plan) -> Span | None:
        one = plan.dependability
        return self.axis.span(one.value, one.ci_low, one.ci_high)

    @property
    def notes(self) -> list[str]:
        return [f"{note[:1].upper()}{note[1:]}." for note in self.plans.notes()]

    @property
    def components(self) -> list[tuple[str, str]]:
        items = self.plans.result.components.items()
        return [(str(COMPONENTS[name]), f"{value:.4g}") for name, value in items]

    @property
    def pilot_text(self) -> str:
        one = self.plans.pilot
        sizes = {"systems": len(one.systems), "topics": len(one.topics)}
        if not one.assessors:
            return _("pilot: systems {systems}, topics {topics}").format(**sizes)
        text = _("pilot: systems {systems}, topics {topics}, assessors {assessors}")
        return text.format(**sizes, assessors=len(one.assessors))

    @property
    def seed_text(self) -> str:
        return _("{n} draws, seed {seed}.").format(n=f"{N_DRAWS:,}", seed=self.plans.seed)

    @property
    def file_name(self) -> str:
        return "topics-or-assessors.json"

    @property
    def address(self) -> str:
        """All of it within the address, for nothing of it is kept."""
        return f"data:application/json;charset=utf-8,{quote(json.dumps(self.plans.record()))}"


def pilot_answer(form: PilotForm) -> PilotAnswer | None:
    """The answer to a form, or None where it has none; why not is then an error of the form."""
    if not form.is_valid():
        return None
    data = form.cleaned_data
    rules = {name: data[name] for name in ("topic_cost", "confidence")}
    try:
        plans = plans_at_equal_cost(data["file"], data["budget"], **rules, seed=SEED)
    except ValueError as refused:
        text = _("%(reason)s.") % {"reason": str(refused).rstrip(".")}
        form.add_error(None, forms.ValidationError(text, code="no_answer"))
        return None
    return PilotAnswer(plans)


def _plan_text(plan: Plan) -> str:
    if plan.n_assessors == 1:
        text = ngettext(
            "{n} topic, judged by one assessor",
            "{n} topics, each judged by one assessor",
            plan.n_topics,
        )
    else:
        text = ngettext(
            "{n} topic, judged by {assessors} assessors",
            "{n} topics, each judged by {assessors} assessors",
            plan.n_topics,
        )
    return text.format(n=f"{plan.n_topics:,}", assessors=plan.n_assessors)


def _figure(value: float) -> str:
    return f"{value:.3f}"


def _interval(one: Reliability) -> str:
    return f"[{one.ci_low:.3f}, {one.ci_high:.3f}]"
