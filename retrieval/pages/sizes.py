from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from console.pages.pictures import FORMS, picture_in
from presentation.spreadsheets import frame_csv
from retrieval.charts.topics import size_curve
from retrieval.pages.pilot_sizes import (
    PilotForm,
    pilot_answer,
)
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
    power_text,
)
from retrieval.sizes import (
    Size,
)

if TYPE_CHECKING:
    import pandas as pd


@require_safe
def how_many(request: HttpRequest) -> HttpResponse:
    """Access: signed in."""
    question, form = _question_and_form(request)
    answer = answer_of(form)
    context = {"questions": QUESTIONS.values(), "question": question, "form": form}
    context |= {"answer": answer, "query": _query(question, form)}
    status = 200 if answer else 422
    return render(request, "retrieval/how_many.html", context, status=status)


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
        text = _(
            "Rounded to the nearest, %(n)s would have power %(power)s: less than was asked for."
        )
        return text % {"n": f"{rounded['n']:,}", "power": power_text(rounded["power"])}

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
        text = _("From %(first)s with %(n)s to %(last)s with %(n_last)s.")
        return text % {
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
    """A reason that begins with the name of an argument, without it, at the field of that name."""
    name, _space, rest = reason.partition(" ")
    if rest and name in form.fields:
        return name, _("%(reason)s.") % {"reason": rest[0].upper() + rest[1:]}
    return None, _("%(reason)s.") % {"reason": reason}
