"""How many topics, targets or candidates a test collection needs; no study is needed to ask."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from console.pages.pictures import FORMS, picture_in
from presentation.spreadsheets import frame_csv
from retrieval.charts.sizes import size_curve
from retrieval.pages.pilot_sizes import (
    PilotForm,
    pilot_answer,
)
from retrieval.pages.size_answers import (
    QUESTIONS,
    Answer,
    SizeQuestion,
    answer_of,
)
from retrieval.pages.size_forms import SizeForm


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
    """The question that the address names, and its form: as it begins, if nothing is filled in."""
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
    """The form's values as an address has them."""
    query = QueryDict(mutable=True)
    query["ask"] = question.name
    query.update({name: str(form.data[name]) for name in form.fields if name in form.data})
    return query.urlencode()
