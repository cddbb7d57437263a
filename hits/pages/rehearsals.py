"""Step 1 of Launch: a rehearsal with simulated annotators."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.roles import Permission
from annotation.exceptions import AnnotationError
from annotation.models import Study
from annotation.pages.stages import study_for
from annotation.study_facts import DELETE_REHEARSAL, REHEARSE, jobs_of, request_study_job
from console.access import may_of, page_permissions, person
from error_codes import CodedText
from hits.crowd.similarity import CONTEXT, PICTURES, RANDOM, REFERENCE, TEXTS
from hits.exceptions import HitsError
from hits.limits import is_marketplace_here
from hits.models import Batch
from hits.rehearsal_report import rehearsal_report
from hits.rehearsals import (
    CREWS,
    DEFAULT_CREW,
    SECONDS_PER_ASSIGNMENT,
    planted_order,
    rehearsal_of,
    rehearsed_size,
    request_rehearsal,
)
from presentation.numbers import join_names
from results.models import Result
from work.models import Job

CREW_LABELS = {
    "careful": gettext_lazy("Careful annotators"),
    "mixed": gettext_lazy("Mixed: 1 in 4 is careless"),
    "careless": gettext_lazy("Careless: 3 in 5 are careless"),
}
BASES = {
    REFERENCE: gettext_lazy("similarity of texts to the reference"),
    CONTEXT: gettext_lazy("similarity of texts to the context"),
    TEXTS: gettext_lazy("similarity of the texts to each other"),
    PICTURES: gettext_lazy("similarity of pictures"),
}
BEFORE, RUNNING, FAILED, STOPPED, FINISHED, DELETING = (
    *("before", "running", "failed", "stopped", "finished", "deleting"),
)
SKIPPED = {"tests": gettext_lazy("qualification tests"), "practice": gettext_lazy("practice")}
MOST_NAMED = 5


class RehearsalForm(forms.Form):
    crew = forms.ChoiceField(
        label=gettext_lazy("Annotators"),
        choices=[(name, CREW_LABELS[name]) for name in CREWS],
        initial=DEFAULT_CREW,
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    planted = forms.BooleanField(
        required=False, widget=forms.CheckboxInput(attrs={"class": "form-check-input"})
    )

    def __init__(self, study: Study, *args: Any, is_naming: bool, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        systems = planted_order(study)
        names = join_names(systems) if is_naming else _("in the order of their names")
        self.fields["planted"].label = _("Plant an order of systems: {names}").format(names=names)
        if len(systems) < 2:
            del self.fields["planted"]


@dataclass(frozen=True)
class RehearsalStep:
    """What step 1 of Launch shows; `state` is one of those above. Systems are named for those who
    may see them (`is_naming`)."""

    study: Study
    is_naming: bool
    data: QueryDict | None = None

    @cached_property
    def form(self) -> RehearsalForm:
        return RehearsalForm(self.study, self.data, is_naming=self.is_naming)

    @cached_property
    def rehearsal(self) -> Study | None:
        return rehearsal_of(self.study)

    @cached_property
    def report(self) -> Result | None:
        return rehearsal_report(self.rehearsal) if self.rehearsal else None

    @cached_property
    def job(self) -> Job | None:
        """The rehearsal's job; while it is deleted, or if that failed, the job that deletes it."""
        kinds = (REHEARSE, DELETE_REHEARSAL)
        return jobs_of(self.study).filter(kind__in=kinds).order_by("-pk").first()

    @cached_property
    def state(self) -> str:
        job = self.job
        if job is not None and job.is_unfinished:
            return DELETING if job.kind == DELETE_REHEARSAL else RUNNING
        if job is not None and job.state == Job.State.FAILED:
            return FAILED
        if self.report is not None:
            return FINISHED
        return BEFORE if self.rehearsal is None else STOPPED

    @property
    def is_current(self) -> bool:
        """Whether it is the step to take next: it is no more once something is published."""
        if self.state in (FINISHED, DELETING) or not self.is_possible:
            return False
        return self.state == RUNNING or not Batch.objects.of(self.study).exists()

    @property
    def is_possible(self) -> bool:
        return is_marketplace_here() and self.study.archived_at is None

    @cached_property
    def size(self) -> tuple[int, int]:
        return rehearsed_size(self.study)

    @property
    def n_items(self) -> int:
        return self.size[0]

    @property
    def n_assignments(self) -> int:
        return self.size[0] * self.size[1]

    @property
    def n_minutes(self) -> int:
        return max(round(self.n_assignments * SECONDS_PER_ASSIGNMENT / 60), 1)

    @property
    def facts(self) -> dict[str, Any]:
        return self.report.facts if self.report else {}

    @property
    def typical_minutes(self) -> float:
        return float(self.facts["typical_seconds"]) / 60

    @property
    def findings(self) -> list[dict[str, Any]]:
        """`tone` is good, warning or note; `pages` has the addresses of the first items that it
        names, as annotators see them, by their keys."""
        record = self.report.record["findings"] if self.report else []
        addresses = {
            key: reverse("console:try-item", args=[self.study.slug, pk])
            for key, pk in self.study.items.filter(
                key__in={key for finding in record for key in finding.get("items", [])[:MOST_NAMED]}
            )
            .order_by()
            .values_list("key", "pk")
        }
        rows = []
        for finding in record:
            keys = finding.get("items", [])[:MOST_NAMED]
            pages = {key: addresses[key] for key in keys if key in addresses}
            text, tone = _finding_in_words(finding)
            rows.append({"text": text, "tone": tone, "pages": pages})
        return rows


def _finding_in_words(finding: dict[str, Any]) -> tuple[CodedText, str]:
    code = finding["code"]
    text, tone = "", "warning"
    match code:
        case "answered":
            text, tone = _("Every question was answered."), "good"
            text += " " + _("Results, Agreement and Downloads are filled with rehearsal data.")
        case "unanswered":
            text = _("No annotator could answer: {names}. Look at its condition.").format(
                names=join_names(finding["questions"])
            )
        case "unreadable":
            text = ngettext(
                "{n:,} answer could not be read: {problem}",
                "{n:,} answers could not be read: {problem}",
                finding["n"],
            ).format(**finding)
        case "long_pages":
            text = _named_items(
                finding["items"],
                "{names} needs scrolling: {words:,} words.",
                "{names} need scrolling: up to {words:,} words.",
            ).format(words=finding["words"], names=_shorten(finding["items"]))
        case "missing_pictures":
            text = _named_items(
                finding["items"],
                "{names} lacks a picture.",
                "{names} lack pictures.",
            ).format(names=_shorten(finding["items"]))
        case "skipped":
            parts = join_names([str(SKIPPED[name]) for name in finding["parts"]])
            text = _("Not rehearsed: {parts}. Try them with Preview as annotator.")
            text, tone = text.format(parts=parts), "note"
        case "basis" if finding["basis"] == RANDOM:
            text = _("The answers are random: the candidates share no words and no pictures.")
            tone = "note"
        case "basis":
            text = _("Ratings are simulated from {basis}. They say nothing about your systems.")
            text, tone = text.format(basis=BASES[finding["basis"]]), "note"
    return CodedText(text, code), tone


def _named_items(items: list[str], one: str, several: str) -> str:
    return ngettext(one, several, len(items))


def _shorten(items: list[str]) -> str:
    names = items[:MOST_NAMED]
    if n := len(items) - len(names):
        names.append(_("{n:,} more").format(n=n))
    word = ngettext("Item", "Items", len(items))
    return f"{word} {join_names(names)}"


def rehearsal_step(request: HttpRequest, study: Study) -> RehearsalStep:
    """For any page that includes `hits/launch/_rehearsal.html`, as `step`."""
    data = request.POST if request.method == "POST" else None
    return RehearsalStep(study, Permission.VIEW_SYSTEMS in page_permissions(request), data)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def rehearsal(request: HttpRequest, slug: str) -> HttpResponse:
    """The step as a part of a page; posted to, it starts a rehearsal.

    Access: whoever has a role in the study; to start one, those who may edit it.
    """
    if request.method == "POST":
        return _start(request, slug)
    study = study_for(request, slug)
    context = {"study": study, "step": rehearsal_step(request, study), "may": may_of(request)}
    return render(request, "hits/launch/_rehearsal.html", context)


def _start(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug, Permission.EDIT)
    form = rehearsal_step(request, study).form
    try:
        request_rehearsal(
            study=study,
            actor=person(request),
            crew=(form.is_valid() and form.cleaned_data["crew"]) or DEFAULT_CREW,
            is_planted=form.is_valid() and form.cleaned_data.get("planted", False),
        )
    except (HitsError, AnnotationError) as refusal:
        messages.error(request, str(refusal), extra_tags=refusal.code)
    return redirect(f"{reverse('console:launch', args=[slug])}#rehearsal")


@require_POST
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    if not jobs_of(study).of_kind(REHEARSE).unfinished().exists():
        request_study_job(study=study, kind=DELETE_REHEARSAL, requested_by=person(request))
    return redirect(f"{reverse('console:launch', args=[slug])}#rehearsal")
