"""The queue in which someone decides what annotators did not agree on."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from annotation.adjudications import decide
from annotation.agreement import rounds_of
from annotation.disputes import Dispute, adjudication_queue
from annotation.exceptions import DecisionRefused
from annotation.models import Candidate, Question, Study
from console.forms import DecisionForm, problems_of
from console.pages.study import person, shown_study, study_page

MOST_LISTED = 20


@require_safe
def adjudication(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = shown_study(request, slug)
    if not shown.n_judgments:
        return study_page(request, shown, "adjudication")
    question, round = _asked(request.GET, shown)
    skipped, decided = _number(request.GET.get("skip", "0")), "decided" in request.GET
    most = skipped + 1 + MOST_LISTED
    queue = adjudication_queue(question, round=round, with_decided=decided, most=most)
    waiting = queue.disputes[skipped:]
    context = {
        "questions": list(shown.questions.all()),
        "question": question,
        "rounds": rounds_of(shown),
        "round": round,
        "queue": queue,
        "n_left": queue.n_disputed - queue.n_decided,
        "skipped": skipped,
        "next_skip": skipped + 1,
        "decided": decided,
        "waiting": waiting[1:],
        # Whoever has decided one goes on to the next without looking for the form.
        **(_first(question, waiting[0], "skip" in request.GET) if waiting else {}),
    }
    return study_page(request, shown, "adjudication", context)


def _first(question: Question, dispute: Dispute, takes_focus: bool) -> dict[str, Any]:
    """The dispute to decide now, with its form."""
    candidate = Candidate.objects.select_related("item", "picture").get(pk=dispute.candidate_id)
    made = dispute.decision
    initial = {"value": _as_choice(made.value), "note": made.note} if made else {}
    form = DecisionForm(question, initial=initial, takes_focus=takes_focus)
    return {"dispute": dispute, "candidate": candidate, "form": form}


def _as_choice(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


@require_POST
def decision(request: HttpRequest, slug: str, candidate_id: int) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = shown_study(request, slug)
    candidate = get_object_or_404(Candidate, item__study=shown, pk=candidate_id)
    question, round = _asked(request.POST, shown)
    form = DecisionForm(question, request.POST)
    if form.is_valid():
        try:
            decide(
                candidate=candidate,
                question=question,
                value=float(form.cleaned_data["value"]),
                decided_by=person(request),
                round=round,
                note=form.cleaned_data["note"],
            )
            messages.success(request, f"{candidate.key} of {candidate.item.key} is decided.")
        except DecisionRefused as refused:
            messages.error(request, str(refused))
    else:
        messages.error(request, f"Nothing was decided. {problems_of(form)}")
    more = {"skip": request.POST.get("skip", "0"), "question": question.name, "round": round}
    return redirect(reverse("console:adjudication", args=[slug], query=more))


def _asked(values: Any, study: Study) -> tuple[Question, int]:
    """The question and round that an address or a form names; else the first of each."""
    questions = study.questions.all()
    name = values.get("question")
    question = questions.filter(name=name).first() if name else questions.first()
    if question is None:
        raise Http404(f"There is no question {name}.")
    rounds = rounds_of(study) or [1]
    round = _number(values["round"]) if values.get("round") else rounds[0]
    if round not in rounds:
        raise Http404(f"There is no round {round}.")
    return question, round


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0
