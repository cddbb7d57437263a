"""What is judged: the items of a study, and one item with everyone's judgments side by side.
A submission in doubt is flagged beside its judgments."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.flags import LONGEST_REASON, flag_submissions, unflag_submissions
from annotation.models import (
    Candidate,
    Item,
    Judgment,
    Question,
    Submission,
    SubmissionQuerySet,
)
from annotation.pages.stages import (
    study_for,
    study_page,
)
from console.access import (
    may,
    person,
)
from console.forms import problems_of
from console.tables import search_words, sort_key, stretch_of
from presentation.numbers import group_values

COLUMNS = ["position", "key", "condition", "n_candidates", "n_submissions"]


@require_safe
def items(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug)
    rows = Item.objects.filter(study=study)
    if words := search_words(request):
        rows = rows.filter(Q(key__icontains=words) | Q(context__icontains=words))
    key = sort_key(request, COLUMNS, "position")
    return study_page(
        request,
        study,
        "annotation/items",
        {"page": stretch_of(request, rows.counted(), key), "sort": key, "words": words},
    )


@require_safe
def item(request: HttpRequest, slug: str, item_id: int) -> HttpResponse:
    study = study_for(request, slug)
    row = get_object_or_404(Item.objects.select_related("picture"), study=study, pk=item_id)
    submissions = row.submissions.select_related("annotator", "assignment")
    beside = Item.objects.filter(study=study)
    # The order that they were imported in is that of the systems.
    order = "position" if may(request, Permission.VIEW_SYSTEMS) else "blind_key"
    candidates = list(row.candidates.select_related("picture").order_by(order, "pk"))
    context = {
        "section": "items",
        "item": row,
        "candidates": candidates,
        "questions": candidates_with_judgments(row, candidates),
        "flag_form": FlagForm(auto_id=False),
        "submissions": submissions.order_by("round", "pk").prefetch_related(
            "written_answers__candidate"
        ),
        "before": beside.preceding(row),
        "after": beside.following(row),
    }
    return study_page(request, study, "annotation/item", context)


@require_POST
def flag(request: HttpRequest, slug: str, submission_id: int) -> HttpResponse:
    submissions = _submission(request, slug, submission_id)
    item_id = get_object_or_404(submissions).item_id
    form = FlagForm(request.POST)
    if form.is_valid():
        flag_submissions(
            submissions=submissions, reason=form.cleaned_data["reason"], actor=person(request)
        )
        text = _("The submission is flagged; it counts until it is rejected.")
        messages.success(request, text, extra_tags="flagged")
    else:
        text = _("Nothing was flagged: say why it is in doubt.")
        messages.error(request, f"{text} {problems_of(form)}", extra_tags="not_flagged")
    return redirect("console:item", slug, item_id)


@require_POST
def unflag(request: HttpRequest, slug: str, submission_id: int) -> HttpResponse:
    submissions = _submission(request, slug, submission_id)
    item_id = get_object_or_404(submissions).item_id
    unflag_submissions(submissions=submissions, actor=person(request))
    return redirect("console:item", slug, item_id)


def _submission(request: HttpRequest, slug: str, submission_id: int) -> SubmissionQuerySet:
    return Submission.objects.of(study_for(request, slug, Permission.REVIEW)).filter(
        pk=submission_id
    )


def candidates_with_judgments(item: Item, candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    return [
        _table(question, round, judgments, candidates)
        for (question, round), judgments in group_values(
            ((row.question, row.submission.round), row)
            for row in Judgment.objects.filter(candidate__item=item)
            .accepted()
            .select_related("question", "submission__annotator")
            .order_by("question__position", "submission__round", "submission__annotator__pseudonym")
        ).items()
    ]


def _table(
    question: Question, round: int, judgments: list[Judgment], candidates: Sequence[Candidate]
) -> dict[str, Any]:
    annotators = tuple(dict.fromkeys(judgment.submission.annotator for judgment in judgments))
    values = {(j.candidate_id, j.submission.annotator): j.value for j in judgments}
    rows = []
    for candidate in candidates:
        row_values = [values.get((candidate.pk, annotator)) for annotator in annotators]
        numbers = [value for value in row_values if value is not None]
        mean = sum(numbers) / len(numbers) if numbers else None
        texts = [value_text(question, value) for value in row_values]
        shown = None if question.categories else mean
        rows.append({"candidate": candidate, "values": texts, "mean": shown})
    return {"question": question, "round": round, "annotators": annotators, "rows": rows}


def value_text(question: Question, value: float | None) -> str:
    if value is None:
        return "–"
    if question.categories and value.is_integer() and 0 <= value < len(question.categories):
        return str(question.categories[int(value)])
    return f"{value:g}"


class FlagForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Why it is in doubt"),
        max_length=LONGEST_REASON,
        widget=forms.TextInput(attrs={"class": "form-control"}),
    )
