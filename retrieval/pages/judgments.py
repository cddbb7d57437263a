"""How a collection is judged: rounds, agreement between them, and qrels of the answers."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from console.access import person
from console.forms import problems_of
from retrieval.answers.studies import judged_studies
from retrieval.exports.grades import RULES
from retrieval.file_readings import subject_of
from retrieval.merged_qrels import RULES as MERGING_RULES
from retrieval.pages.collection import collection_for, collection_page
from retrieval.study_qrels import OWN, STUDY_QRELS, request_study_qrels
from work.models import Job

RULE_TITLES = {
    "majority": gettext_lazy("the highest grade that more than half of the annotators reached"),
    "any": gettext_lazy("the highest grade of any annotator"),
    "all": gettext_lazy("the lowest grade of all annotators"),
    "votes": gettext_lazy("how many annotators found it relevant"),
}


class StudyQrelsForm(forms.Form):
    """Of which round, and by which rule, a study's judgments become qrels."""

    round = forms.IntegerField(min_value=1, max_value=1000)
    rule = forms.ChoiceField()

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        rule = self.fields["rule"]
        assert isinstance(rule, forms.ChoiceField)
        rule.choices = rule_choices()


@require_safe
@never_cache
def judgments(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    collection = collection_for(request, slug)
    context = {
        "studies": judged_studies(collection),
        "rules": rule_choices(),
        "job": Job.objects.about(subject_of(collection)).of_kind(STUDY_QRELS).first(),
    }
    return collection_page(request, collection, "judgments", context)


@require_POST
def make_qrels(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
    """Access: those who may edit."""
    collection = collection_for(request, slug, Permission.EDIT)
    study = get_object_or_404(collection.studies, pk=study_id)
    form = StudyQrelsForm(request.POST)
    if form.is_valid():
        request_study_qrels(
            collection=collection, study=study, actor=person(request), **form.cleaned_data
        )
    else:
        messages.error(
            request, _("No qrels were made: {problem}").format(problem=problems_of(form))
        )
    return redirect("console:collection-judgments", slug)


def rule_choices() -> list[tuple[str, str]]:
    """How several annotators' judgments may become one grade, or stay apart."""
    own = _("each annotator's own, of every round: a file for How far to trust it")
    return [*((rule, str(RULE_TITLES[rule])) for rule in RULES), (OWN, own)]


def merging_rule_choices() -> list[tuple[str, str]]:
    """How several assessors' grades of a file may become one."""
    return [(rule, str(RULE_TITLES[rule])) for rule in MERGING_RULES]
