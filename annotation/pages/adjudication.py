from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.agreement import rounds_of
from annotation.disagreement import default_threshold
from annotation.disputes import (
    Dispute,
    add_comment,
    adjudication_queue,
    decide,
    delete_comment,
    edit_comment,
)
from annotation.exceptions import CommentRefused, DecisionRefused, require
from annotation.models import LONGEST_COMMENT, Candidate, DisputeComment, Question, Study
from annotation.pages.downloads import job_of
from annotation.pages.stages import (
    study_for,
    study_page,
)
from annotation.result_kinds.agreement import AgreementKind
from annotation.study_facts import AGREEMENT
from console.access import person
from console.forms import problems_of

MOST_LISTED = 20
MOST_COMMENTS = 100
# A scale of so few steps is chosen from; a longer one is typed.
MOST_CHOICES = 12


@require_safe
def adjudication(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug)
    if not study.n_judgments:
        return study_page(request, study, "annotation/adjudication")
    # The queue is read from the agreement computed last; a newer one is made meanwhile.
    job = job_of(request, study, AGREEMENT)
    context = {
        "job": job,
        "is_computed": job is None or AgreementKind().list_results(study).exists(),
    }
    if context["is_computed"]:
        context |= _queue(request.GET, study)
    return study_page(request, study, "annotation/adjudication", context)


def _queue(values: QueryDict, study: Study) -> dict[str, Any]:
    selection, with_decided = QueueSelection.of(study, values), "decided" in values
    queue = adjudication_queue(
        selection.question,
        round=selection.round,
        threshold=selection.threshold,
        with_decided=with_decided,
        skip=selection.skip,
        most=1 + MOST_LISTED,
    )
    first, *others = queue.disputes or (None,)
    return {
        "questions": selection.questions,
        "question": selection.question,
        "rounds": selection.rounds,
        "round": selection.round,
        "queue": queue,
        "percent": 100 * queue.threshold,
        "threshold_problem": selection.threshold_problem,
        "skipped": selection.skip,
        "next_skip": selection.skip + 1,
        "decided": with_decided,
        "waiting": others,
        # Whoever has decided one goes on to the next without looking for the form.
        **(_first(selection.question, selection.round, first, "skip" in values) if first else {}),
    }


def _first(question: Question, round: int, dispute: Dispute, takes_focus: bool) -> dict[str, Any]:
    candidate = (
        Candidate.objects.select_related("item__picture", "picture")
        .defer("picture__content", "item__picture__content")
        .get(pk=dispute.candidate_id)
    )
    decision = dispute.decision
    form = DecisionForm(
        question,
        initial={"value": _as_choice(decision.value), "note": decision.note} if decision else {},
        takes_focus=takes_focus,
    )
    comments = DisputeComment.objects.about(candidate, question, round)
    return {
        "dispute": dispute,
        "candidate": candidate,
        "form": form,
        "comments": comments.select_related("written_by")[:MOST_COMMENTS],
        "longest_comment": LONGEST_COMMENT,
    }


def _as_choice(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


@require_POST
def decision(request: HttpRequest, slug: str, candidate_id: int) -> HttpResponse:
    study = study_for(request, slug, Permission.ADJUDICATE)
    candidate = get_object_or_404(Candidate, item__study=study, pk=candidate_id)
    selection = QueueSelection.of(study, request.POST)
    form = DecisionForm(selection.question, request.POST)
    if form.is_valid():
        _decide(request, candidate, selection, form.cleaned_data)
    else:
        text = " ".join([_("Nothing was decided."), problems_of(form)])
        messages.error(request, text, extra_tags="nothing_decided")
    return redirect(queue_address(slug, request.POST, selection))


def _decide(
    request: HttpRequest, candidate: Candidate, selection: QueueSelection, values: dict[str, Any]
) -> None:
    try:
        decide(
            candidate=candidate,
            question=selection.question,
            value=float(values["value"]),
            decided_by=person(request),
            round=selection.round,
            note=values["note"],
        )
    except DecisionRefused as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    else:
        messages.success(
            request,
            _("%(candidate)s of %(item)s is decided.")
            % {"candidate": candidate.blind_name, "item": candidate.item.key},
        )


def queue_address(slug: str, values: QueryDict, selection: QueueSelection) -> str:
    more = {
        "skip": values.get("skip", "0"),
        "question": selection.question.name,
        "round": selection.round,
    }
    more |= {name: values[name] for name in ("threshold", "decided") if values.get(name)}
    return reverse("console:adjudication", args=[slug], query=more)


@dataclass(frozen=True)
class QueueSelection:
    questions: list[Question]
    question: Question
    rounds: list[int]
    round: int
    threshold: float
    skip: int
    threshold_problem: str

    @classmethod
    def of(cls, study: Study, values: QueryDict) -> QueueSelection:
        questions, rounds = list(study.questions.all()), rounds_of(study) or [1]
        name = values.get("question") or (questions[0].name if questions else None)
        question = next((one for one in questions if one.name == name), None)
        if question is None:
            raise Http404(f"There is no question {name}.")
        round_text = values.get("round")
        round = _number(round_text) if round_text else rounds[0]
        require(round in rounds, Http404(f"There is no round {round}."))
        skip = _number(values.get("skip", "0"))
        text = values.get("threshold", "").strip()
        share = _share(text)
        threshold = default_threshold(question) if share is None else share
        problem = _threshold_problem(text, threshold) if text and share is None else ""
        return cls(questions, question, rounds, round, threshold, skip, problem)


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share < 1 else None


def _threshold_problem(text: str, instead: float) -> str:
    return _(
        "The threshold “%(text)s” is not a share from 0 to below 1; the one of the scale is used: "
        "%(share)s."
    ) % {"text": text[:40], "share": f"{instead:g}"}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


@require_POST
def add(request: HttpRequest, slug: str, candidate_id: int) -> HttpResponse:
    study = study_for(request, slug, Permission.ADJUDICATE)
    candidate = get_object_or_404(Candidate, item__study=study, pk=candidate_id)
    selection = QueueSelection.of(study, request.POST)
    try:
        add_comment(
            candidate=candidate,
            question=selection.question,
            round=selection.round,
            text=request.POST.get("text", ""),
            written_by=person(request),
        )
    except CommentRefused as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    return _redirect_to_comments(request, study)


@require_POST
def edit(request: HttpRequest, slug: str, comment_id: int) -> HttpResponse:
    study = study_for(request, slug, Permission.ADJUDICATE)
    comment = _own(request, study, comment_id)
    try:
        edit_comment(comment=comment, text=request.POST.get("text", ""), actor=person(request))
    except CommentRefused as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    return _redirect_to_comments(request, study)


@require_POST
def delete(request: HttpRequest, slug: str, comment_id: int) -> HttpResponse:
    study = study_for(request, slug, Permission.ADJUDICATE)
    delete_comment(comment=_own(request, study, comment_id), actor=person(request))
    messages.success(request, _("The comment is deleted."))
    return _redirect_to_comments(request, study)


def _redirect_to_comments(request: HttpRequest, study: Study) -> HttpResponse:
    selection = QueueSelection.of(study, request.POST)
    return redirect(f"{queue_address(study.slug, request.POST, selection)}#comments")


def _own(request: HttpRequest, study: Study, comment_id: int) -> DisputeComment:
    comments = DisputeComment.objects.of(study).select_related("candidate__item", "question__study")
    return get_object_or_404(comments, pk=comment_id, written_by=person(request))


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
        return isinstance(self.fields["value"], forms.ChoiceField)


def _value_field(question: Question) -> forms.Field:
    steps = _steps(question)
    if steps:
        return forms.ChoiceField(
            label=_("Decision"),
            choices=steps,
            widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
        )
    low, high = question.scale_min, question.scale_max
    return forms.FloatField(
        label=_("Decision, %(low)s to %(high)s") % {"low": f"{low:g}", "high": f"{high:g}"},
        min_value=low,
        max_value=high,
        widget=forms.NumberInput(attrs={"class": "form-control", "step": "any"}),
    )


def _steps(question: Question) -> list[tuple[str, str]]:
    if question.categories:
        return [(str(position), str(name)) for position, name in enumerate(question.categories)]
    low, high = question.scale_min, question.scale_max
    is_stepped = question.level == Question.Level.ORDINAL and low.is_integer()
    if not is_stepped or high - low >= MOST_CHOICES:
        return []
    return [(str(step), str(step)) for step in range(int(low), int(high) + 1)]
