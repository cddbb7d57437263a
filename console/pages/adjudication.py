"""The queue in which someone decides what annotators did not agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.adjudications import decide
from annotation.agreement import rounds_of
from annotation.disagreement import default_threshold
from annotation.disputes import Dispute, adjudication_queue
from annotation.exceptions import DecisionRefused
from annotation.models import AgreementVersion, Candidate, Question, Study
from console.forms import DecisionForm, problems_of
from console.pages.study import person, study_for, study_page
from console.pages.waiting import job_of
from console.results import AGREEMENT

MOST_LISTED = 20


@require_safe
def adjudication(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    shown = study_for(request, slug)
    if not shown.n_judgments:
        return study_page(request, shown, "adjudication")
    # The queue is read from the agreement computed last; a newer one is made meanwhile.
    job = job_of(request, shown, AGREEMENT)
    is_computed = job is None or AgreementVersion.objects.of(shown).exists()
    context = {"job": job, "is_computed": is_computed}
    if context["is_computed"]:
        context |= _queue(request.GET, shown)
    return study_page(request, shown, "adjudication", context)


def _queue(values: QueryDict, study: Study) -> dict[str, Any]:
    """The stretch of the queue that the address names, with the form of its first candidate."""
    asked, decided = Asked.of(study, values), "decided" in values
    queue = adjudication_queue(
        asked.question,
        round=asked.round,
        threshold=asked.threshold,
        with_decided=decided,
        skip=asked.skip,
        most=1 + MOST_LISTED,
    )
    first, *waiting = queue.disputes or (None,)
    return {
        "questions": asked.questions,
        "question": asked.question,
        "rounds": asked.rounds,
        "round": asked.round,
        "queue": queue,
        "percent": 100 * queue.threshold,
        "skipped": asked.skip,
        "next_skip": asked.skip + 1,
        "decided": decided,
        "waiting": waiting,
        # Whoever has decided one goes on to the next without looking for the form.
        **(_first(asked.question, first, "skip" in values) if first else {}),
    }


def _first(question: Question, dispute: Dispute, takes_focus: bool) -> dict[str, Any]:
    """The dispute to decide now, with its form."""
    pictures = Candidate.objects.select_related("item__picture", "picture")
    candidate = pictures.defer("picture__content", "item__picture__content").get(
        pk=dispute.candidate_id
    )
    made = dispute.decision
    initial = {"value": _as_choice(made.value), "note": made.note} if made else {}
    form = DecisionForm(question, initial=initial, takes_focus=takes_focus)
    return {"dispute": dispute, "candidate": candidate, "form": form}


def _as_choice(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


@require_POST
def decision(request: HttpRequest, slug: str, candidate_id: int) -> HttpResponse:
    """Access: those who may adjudicate."""
    shown = study_for(request, slug, Permission.ADJUDICATE)
    candidate = get_object_or_404(Candidate, item__study=shown, pk=candidate_id)
    asked = Asked.of(shown, request.POST)
    question, round = asked.question, asked.round
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
            names = {"candidate": candidate.key, "item": candidate.item.key}
            messages.success(request, _("%(candidate)s of %(item)s is decided.") % names)
        except DecisionRefused as refused:
            messages.error(request, str(refused))
    else:
        messages.error(request, " ".join([_("Nothing was decided."), problems_of(form)]))
    more = {"skip": request.POST.get("skip", "0"), "question": question.name, "round": round}
    if threshold := request.POST.get("threshold"):
        more["threshold"] = threshold
    return redirect(reverse("console:adjudication", args=[slug], query=more))


@dataclass(frozen=True)
class Asked:
    """What an address or a form names of a study's queue; Http404 where that is not there."""

    questions: list[Question]
    question: Question
    rounds: list[int]
    round: int
    threshold: float
    skip: int

    @classmethod
    def of(cls, study: Study, values: QueryDict) -> Asked:
        """The question and round that are named; else the first of each."""
        questions, rounds = list(study.questions.all()), rounds_of(study) or [1]
        name = values.get("question") or (questions[0].name if questions else None)
        question = next((one for one in questions if one.name == name), None)
        if question is None:
            raise Http404(f"There is no question {name}.")
        named_round = values.get("round")
        round = _number(named_round) if named_round else rounds[0]
        if round not in rounds:
            raise Http404(f"There is no round {round}.")
        threshold = _threshold(values.get("threshold", ""), question)
        return cls(questions, question, rounds, round, threshold, _number(values.get("skip", "0")))


def _threshold(text: str, question: Question) -> float:
    """A share between 0 and 1; whatever else an address holds means the question's own."""
    try:
        share = float(text)
    except ValueError:
        return default_threshold(question)
    return share if 0 <= share < 1 else default_threshold(question)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0
