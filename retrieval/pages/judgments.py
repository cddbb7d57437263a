from typing import Any

from django import forms
from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.agreement import rounds_of
from annotation.models.studies import CountedStudy
from annotation.pages.study import (
    study_for,
    study_page,
)
from console.access import person
from console.forms import problems_of
from console.tables import page_of, search_words
from retrieval.answers.studies import judged_studies
from retrieval.derived_files import OWN, RULES as MERGING_RULES, STUDY_QRELS, request_study_qrels
from retrieval.exports.assessors import (
    ReasonText,
    count_terms_of,
    read_terms,
    reason_texts,
    reasons_of,
)
from retrieval.exports.grades import RULES
from retrieval.exports.qrels import Source, has_qrels, judgment_source
from retrieval.file_readings import subject_of
from retrieval.pages.collection import collection_for, collection_page
from stats.quality.reasons import term_pattern
from work.models import Job

RULE_TITLES = {
    "majority": gettext_lazy("the highest grade that more than half of the annotators reached"),
    "any": gettext_lazy("the highest grade of any annotator"),
    "all": gettext_lazy("the lowest grade of all annotators"),
    "votes": gettext_lazy("how many annotators found it relevant"),
}


def rule_choices() -> list[tuple[str, str]]:
    own = _("each annotator's own, of every round: a file for How far to trust it")
    return [*((rule, str(RULE_TITLES[rule])) for rule in RULES), (OWN, own)]


def merging_rule_choices() -> list[tuple[str, str]]:
    return [(rule, str(RULE_TITLES[rule])) for rule in MERGING_RULES]


class StudyQrelsForm(forms.Form):
    round = forms.IntegerField(min_value=1, max_value=1000)
    rule = forms.ChoiceField(choices=rule_choices)


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


@require_safe
def reasons(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    return study_page(
        request,
        study,
        "retrieval/reasons",
        {"view": reasons_view(request, study), "section": "labels"},
    )


# The most reasons that a page reads; `reason_terms` and `export_qrels --reasons` read all.
MOST_REASONS = 20_000
ABOUT = ("relevant", "other")


def reasons_view(request: HttpRequest, study: CountedStudy) -> dict[str, Any] | None:
    """What the address asks for; None where no documents are judged, or nothing is written."""
    rounds = rounds_of(study)
    if not rounds or not has_qrels(study):
        return None
    round = _round(request, rounds)
    source = judgment_source(study, round=round)
    texts = reason_texts(source, most=MOST_REASONS + 1)
    is_cut, texts = len(texts) > MOST_REASONS, texts[:MOST_REASONS]
    if not texts:
        return None
    terms = read_terms()
    term = request.GET.get("term", "")
    term = term if term in terms else ""
    about = request.GET.get("about", "")
    about = about if about in ABOUT else ""
    words = search_words(request)
    page = page_of(request, _chosen(texts, terms.get(term, []), about, words))
    return {
        "rounds": rounds,
        "round": round,
        "term": term,
        "words": words,
        "about": about,
        "counts": _counts(study, source, texts),
        "page": page,
        "reasons": list(reasons_of(source, list(page))),
        "is_cut": is_cut,
    }


def _round(request: HttpRequest, rounds: list[int]) -> int:
    text = request.GET.get("round", "")
    return int(text) if text in map(str, rounds) else rounds[0]


def _chosen(
    texts: list[ReasonText], words_of_term: list[str], about: str, words: str
) -> list[ReasonText]:
    if about:
        texts = [one for one in texts if one.is_relevant == (about == "relevant")]
    if words_of_term:
        pattern = term_pattern("term", words_of_term)
        texts = [one for one in texts if pattern.search(one.text)]
    return [one for one in texts if words.casefold() in one.text.casefold()] if words else texts


def _counts(study: CountedStudy, source: Source, texts: list[ReasonText]) -> dict[str, Any]:
    """The counts of a round, made once for each version of the judgments."""
    version = f"{study.pk}:{study.created_at.timestamp()}:{study.judgments_version}"
    key = f"reason-terms:{version}:{source.round}:{len(texts)}"
    counts: dict[str, Any] | None = cache.get(key)
    if counts is None:
        counts = count_terms_of(texts).record()
        cache.set(key, counts)
    return counts
