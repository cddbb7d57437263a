from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from annotation.uploads import plain_file_name
from console.chart_values import Axis
from console.forms import PlainForm
from console.pages.pictures import FORMS, picture_in
from presentation.row_files import frame_csv
from retrieval.charts import size_curve
from retrieval.exceptions import FileFaults
from retrieval.pages.planning_forms import (
    METHODS,
    OTHER_METHODS,
    POWER,
    WIDTH,
    CorrelationForm,
    DifferenceForm,
    KappaForm,
    MetricsForm,
    SizeForm,
    WidthForm,
    number_field,
    power_text,
)
from retrieval.sizes import (
    MOST_ASSESSORS,
    EqualCost,
    Pilot,
    Size,
    plans_at_equal_cost,
    read_pilot,
)
from stats.inference.generalisability import N_DRAWS, Plan, Reliability
from stats.libraries import pd

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


class PilotForm(PlainForm):
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
    budget = number_field(
        gettext_lazy("Budget"),
        400,
        min_value=0,
        max_value=MOST_BUDGET,
        help_text=gettext_lazy("In judgments of a topic by one assessor, each of which costs 1."),
    )
    topic_cost = number_field(
        gettext_lazy("Cost of a topic besides"),
        0,
        min_value=0,
        max_value=MOST_BUDGET,
        help_text=gettext_lazy(
            "However many judge it: to write it, to pool it. 2 if that costs as much as two "
            "judgments."
        ),
    )
    confidence = number_field(gettext_lazy("Confidence"), 0.95, min_value=0, max_value=1)

    def clean_file(self) -> Pilot:
        """The values of the file, or every fault of it by line, as the command says them."""
        file = self.cleaned_data["file"]
        if file.size > MOST_BYTES:
            raise forms.ValidationError(
                _("It has more than {n} MiB.").format(n=MOST_BYTES // 1024**2), code="too_large"
            )
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
        return [text.format(plan=_plan_text(least), value=_figure(least.dependability.value))]

    @property
    def interval_title(self) -> str:
        return _("{confidence} % interval").format(confidence=f"{self.plans.confidence * 100:g}")

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [self._row(plan) for plan in self.plans.result.plans]

    def _row(self, plan: Plan) -> dict[str, Any]:
        one, other = plan.dependability, plan.generalizability
        return {
            "plan": plan,
            "cost": f"{self.plans.cost(plan):,g}",
            "is_best": plan == self.plans.best,
            "span": self.axis.span(one.value, one.ci_low, one.ci_high),
            "dependability": _figure(one.value),
            "dependability_interval": _interval(one),
            "generalizability": _figure(other.value),
            "generalizability_interval": _interval(other),
            "se": f"{plan.se_of_difference:.4g}",
        }

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
        return _("pilot: systems {systems}, topics {topics}, assessors {assessors}").format(
            **sizes, assessors=len(one.assessors)
        )

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


@require_safe
def how_many(request: HttpRequest) -> HttpResponse:
    """Access: signed in."""
    question, form = _question_and_form(request)
    answer = answer_of(form)
    context = {"questions": QUESTIONS.values(), "question": question, "form": form}
    context |= {"answer": answer, "query": _query(question, form)}
    return render(request, "retrieval/how_many.html", context, status=200 if answer else 422)


@require_http_methods(["GET", "HEAD", "POST"])
def pilot(request: HttpRequest) -> HttpResponse:
    """Access: signed in. Topics against assessors, of a file that is read and not kept."""
    is_sent = request.method == "POST"
    form = PilotForm(request.POST, request.FILES) if is_sent else PilotForm()
    answer = pilot_answer(form) if is_sent else None
    context = {"questions": QUESTIONS.values(), "form": form, "answer": answer}
    status = 422 if is_sent and answer is None else 200
    return render(request, "retrieval/how_many_pilot.html", context, status=status)


@require_safe
def curve(request: HttpRequest, form: str) -> HttpResponse:
    """Access: signed in. The curve around an answer as specification, data or file."""
    question, asked = _question_and_form(request)
    answer = answer_of(asked)
    if answer is None or form not in FORMS:
        raise Http404(f"There is no curve {form} of this.")
    return _picture(request, question.name, answer, form)


def _picture(request: HttpRequest, name: str, answer: Answer, form: str) -> HttpResponse:
    rows, of = answer.rows, answer.form.of
    return picture_in(
        form,
        request,
        name=f"how-many-{name}",
        draw=lambda: size_curve(rows, of=of, wanted=answer.form.wanted, n=answer.size.n),
        data=lambda: frame_csv(rows),
    )


def _question_and_form(request: HttpRequest) -> tuple[SizeQuestion, SizeForm]:
    name = request.GET.get("ask", next(iter(QUESTIONS)))
    if name not in QUESTIONS:
        raise Http404(f"There is no question {name}.")
    question = QUESTIONS[name]
    names = question.form.base_fields
    if any(name in request.GET for name in names):
        return question, question.form(request.GET)
    initial = {name: field.initial for name, field in names.items() if field.initial is not None}
    return question, question.form(initial)


def _query(question: SizeQuestion, form: SizeForm) -> str:
    query = QueryDict(mutable=True)
    query["ask"] = question.name
    query.update({name: str(form.data[name]) for name in form.fields if name in form.data})
    return query.urlencode()


@dataclass(frozen=True)
class SizeQuestion:
    name: str
    title: str | Promise
    form: type[SizeForm]


QUESTIONS = {
    one.name: one
    for one in (
        SizeQuestion("difference", gettext_lazy("Systems to be told apart"), DifferenceForm),
        SizeQuestion("width", gettext_lazy("A mean's interval"), WidthForm),
        SizeQuestion("kappa", gettext_lazy("Agreement (kappa)"), KappaForm),
        SizeQuestion("correlation", gettext_lazy("A correlation"), CorrelationForm),
        SizeQuestion("metrics", gettext_lazy("Two metrics"), MetricsForm),
    )
}


@dataclass(frozen=True)
class Answer:
    form: SizeForm
    size: Size

    @property
    def sentence(self) -> str:
        return self.form.sentence(self.size)

    @property
    def exact(self) -> str:
        text = _("exactly %(exact)s, rounded up")
        if self.form.cleaned_data.get("per_target", 1) > 1:
            text = _("exactly %(exact)s, if all were independent")
        return text % {"exact": f"{self.size.n_exact:,.2f}"}

    @property
    def rounding(self) -> str:
        if not (rounded := self.size.rounded):
            return ""
        return _(
            "Rounded to the nearest, %(n)s would have power %(power)s: less than was asked for."
        ) % {"n": f"{rounded['n']:,}", "power": power_text(rounded["power"])}

    @property
    def variants(self) -> list[tuple[str, int]]:
        titles = {str(name): title for name, title in METHODS.items()} | OTHER_METHODS
        return [(str(titles[method]), n) for method, n in self.size.variants.items()]

    @property
    def rows(self) -> pd.DataFrame:
        return self.form.rows(self.size)

    @property
    def chart_title(self) -> str:
        return _("Power by number") if self.form.of == POWER else _("Width by number")

    @property
    def words(self) -> str:
        rows, of = self.rows, self.form.of
        first, last = rows.iloc[0], rows.iloc[-1]
        if of == WIDTH:
            first, last = last, first
        return _("From %(first)s with %(n)s to %(last)s with %(n_last)s.") % {
            "first": f"{first[of]:.3f}",
            "n": f"{first['n']:,.0f}",
            "last": f"{last[of]:.3f}",
            "n_last": f"{last['n']:,.0f}",
        }


def answer_of(form: SizeForm) -> Answer | None:
    """The answer to a form, or None where it has none; why not is then an error of the form."""
    if not form.is_valid():
        return None
    try:
        return Answer(form, form.size())
    except (ValueError, OverflowError) as refused:
        form.add_error(*_at_its_field(form, str(refused).rstrip(".")))
        return None


def _at_its_field(form: SizeForm, reason: str) -> tuple[str | None, str]:
    name, _space, rest = reason.partition(" ")
    if rest and name in form.fields:
        return name, _("%(reason)s.") % {"reason": rest[0].upper() + rest[1:]}
    return None, _("%(reason)s.") % {"reason": reason}
