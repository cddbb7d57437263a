from collections.abc import Iterator
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.text import format_lazy
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.roles import Permission
from annotation.agreement import rounds_of
from annotation.models.studies import CountedStudy
from annotation.pages.stages import (
    study_for,
    study_page,
)
from console.access import may, person
from console.forms import PlainForm, offer_choices, problems_of
from console.tables import page_of, search_words
from results.pages import name_download
from retrieval.answers.studies import judged_studies
from retrieval.derived_files import (
    MERGED_QRELS,
    OWN,
    RULES as MERGING_RULES,
    STUDY_QRELS,
    request_merged_qrels,
    request_study_qrels,
)
from retrieval.exceptions import CollectionUnfit
from retrieval.exports.assessors import (
    ReasonText,
    count_terms_of,
    read_terms,
    reason_texts,
    reasons_of,
)
from retrieval.exports.grades import RULES
from retrieval.exports.qrels import Source, has_qrels, judgment_source
from retrieval.file_readings import READ_FILES, confirm_file, request_reading, subject_of
from retrieval.models import Collection, CollectionFile, FileTopic
from retrieval.models.collections import NAME_LENGTH, CollectionFileQuerySet
from retrieval.pages.collections import collection_for, collection_page
from retrieval.pages.pools import SOURCES
from retrieval.stored_files import DESCRIPTIONS, describe_file, remove_file, store_file
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
def make_study_qrels(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
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


JUDGED = (CollectionFile.Kind.QRELS, CollectionFile.Kind.ASSESSORS)
JUDGES = [
    (CollectionFile.MadeBy.UNKNOWN, gettext_lazy("not stated")),
    (CollectionFile.MadeBy.PEOPLE, gettext_lazy("people")),
    (CollectionFile.MadeBy.MACHINE, gettext_lazy("a machine")),
    (CollectionFile.MadeBy.SIMULATED, gettext_lazy("simulated workers")),
]
OF_RUNS, OF_QRELS = ("family",), ("made_by", "assessor", "round", "rule")
KINDS = CollectionFile.Kind
NOT_OF = {
    KINDS.RUN: OF_QRELS,
    KINDS.ASSESSORS: (*OF_RUNS, "made_by", "assessor", "rule"),
    **dict.fromkeys((KINDS.CATALOGUE, KINDS.EMBEDDINGS), (*OF_RUNS, *OF_QRELS)),
}


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def files(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit upload."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.EDIT if is_post else Permission.VIEW)
    form = FilesForm(request.POST, request.FILES) if is_post else FilesForm()
    if is_post and form.is_valid() and _store(request, collection, form):
        return redirect("console:collection-files", slug)
    context = {
        "form": form if may(request, Permission.EDIT) else None,
        "runs": list_runs(collection),
        "qrels": list_qrels(collection),
        "faulty": list(collection.files.filter(n_faults__gt=0).order_by("pk")),
        "unconfirmed": collection.files.unconfirmed().defer("faults").order_by("pk"),
        "rules": merging_rule_choices(),
        "job": Job.objects.about(subject_of(collection)).of_kind(READ_FILES, MERGED_QRELS).first(),
    }
    return collection_page(request, collection, "files", context)


class SeveralFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class SeveralFilesField(forms.FileField):
    widget = SeveralFilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = (data if isinstance(data, list | tuple) else [data]) or [None]
        if not self.required:
            files = [file for file in files if file]
        return [super(SeveralFilesField, self).clean(file, initial) for file in files]


class FilesForm(PlainForm):
    uploads = SeveralFilesField(
        label=gettext_lazy("Files"),
        help_text=format_lazy(
            gettext_lazy(
                "Runs (topic Q0 docno rank score tag) and qrels (topic iteration docno grade), "
                "plain or compressed with gzip; up to {n} at once. Where two assessors graded a "
                "document, column 2 names them."
            ),
            n=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        ),
        allow_empty_file=True,
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What they are"),
        required=False,
        choices=[
            ("", gettext_lazy("find out from their columns")),
            (CollectionFile.Kind.RUN, gettext_lazy("runs")),
            (CollectionFile.Kind.QRELS, gettext_lazy("qrels")),
            (
                CollectionFile.Kind.ASSESSORS,
                gettext_lazy("qrels of several assessors, named in column 2"),
            ),
        ],
    )
    made_by = forms.ChoiceField(
        label=gettext_lazy("Who judged the qrels"),
        required=False,
        choices=JUDGES,
        initial=CollectionFile.MadeBy.UNKNOWN,
        help_text=gettext_lazy(
            "Qrels of a study with simulated answers are marked, and recognized."
        ),
    )
    family = forms.CharField(
        label=gettext_lazy("Family of the runs (optional)"),
        required=False,
        max_length=NAME_LENGTH,
        help_text=gettext_lazy(
            "Runs that share a model; they are left out together when reuse is estimated."
        ),
    )


def _store(request: HttpRequest, collection: Collection, form: FilesForm) -> bool:
    data, stored = form.cleaned_data, []
    for file in data["uploads"]:
        try:
            stored.append(
                store_file(
                    collection=collection,
                    file=file,
                    actor=person(request),
                    kind=data["kind"],
                    family=data["family"],
                    made_by=data["made_by"],
                    is_confirmed=False,
                )
            )
        except CollectionUnfit as refused:
            form.add_error("uploads", ValidationError(f"{file.name}: {refused}", code=refused.code))
    if stored:
        request_reading(collection=collection, files=stored, requested_by=person(request))
    return not form.errors


def file_for(
    request: HttpRequest, slug: str, file_id: int, permission: Permission = Permission.VIEW
) -> CollectionFile:
    collection = collection_for(request, slug, permission)
    file = get_object_or_404(collection.files.defer("faults"), pk=file_id)
    file.collection = collection
    return file


@require_http_methods(["GET", "HEAD", "POST"])
def file(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit describe."""
    is_post = request.method == "POST"
    row = file_for(request, slug, file_id, Permission.EDIT if is_post else Permission.VIEW)
    stored = CollectionFile.objects.select_related("collection__team").get(pk=row.pk)
    form = DescriptionForm(request.POST if is_post else None, instance=stored)
    if is_post and form.is_valid():
        try:
            describe_file(file=row, actor=person(request), **form.cleaned_data)
        except CollectionUnfit as refused:
            form.add_error("name", ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("Saved."))
            return redirect(f"console:{_listing_of(row)}", slug)
    stage = _listing_of(row)
    context = {"file": row, "form": form if may(request, Permission.EDIT) else None}
    return collection_page(request, row.collection, "file", context, stage=stage)


def _listing_of(file: CollectionFile) -> str:
    return "collection-pools" if file.kind in SOURCES else "collection-files"


@require_POST
def confirm(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: those who may edit. Use a file without the rows that its report leaves out."""
    row = file_for(request, slug, file_id, Permission.EDIT)
    if confirm_file(file=row, actor=person(request)):
        messages.success(request, _("{name} was added.").format(name=row.name))
    return redirect(f"console:{_listing_of(row)}", slug)


@require_POST
def remove(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: those who may edit."""
    row = file_for(request, slug, file_id, Permission.EDIT)
    remove_file(file=row, actor=person(request))
    messages.success(request, _("{name} was removed.").format(name=row.name))
    return redirect(f"console:{_listing_of(row)}", slug)


@require_POST
def make_qrels(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: those who may edit. Qrels of several assessors' grades."""
    row = file_for(request, slug, file_id, Permission.EDIT)
    form = MergingForm(request.POST)
    if row.kind != CollectionFile.Kind.ASSESSORS or not row.is_usable:
        messages.error(
            request, _("{name} does not hold several assessors' grades.").format(name=row)
        )
    elif form.is_valid():
        request_merged_qrels(
            collection=row.collection, file=row, actor=person(request), **form.cleaned_data
        )
    else:
        text = _("No qrels were made: {problem}").format(problem=problems_of(form))
        messages.error(request, text, extra_tags="no_qrels_made")
    return redirect("console:collection-files", slug)


@require_safe
def content(request: HttpRequest, slug: str, file_id: int) -> StreamingHttpResponse:
    """Access: those who may export. The file as it was sent."""
    row = file_for(request, slug, file_id, Permission.EXPORT)
    response = StreamingHttpResponse(_parts(row), content_type="application/octet-stream")
    name_download(
        request, response, row.collection, f"{slug}-{row.kind}-{row.pk}.txt", file=row.file_name
    )
    return response


def _parts(file: CollectionFile) -> Iterator[bytes]:
    for part in file.parts.order_by("position").iterator(chunk_size=4):
        yield bytes(part.content)


def list_runs(collection: Collection) -> CollectionFileQuerySet:
    in_qrels = FileTopic.objects.filter(
        file__collection=collection.pk,
        file__kind__in=JUDGED,
        topic=OuterRef("topic"),
    )
    foreign = (
        FileTopic.objects.filter(file__collection=collection.pk, file__kind=CollectionFile.Kind.RUN)
        .filter(~Exists(in_qrels))
        .values("file")
        .annotate(n=Count("pk"))
    )
    n_foreign: dict[int, int] = dict(foreign.values_list("file", "n"))
    rows = collection.files.runs().usable().defer("faults").order_by("family", "name")
    for row in rows:
        row.n_foreign = n_foreign.get(row.pk, 0)  # type: ignore[attr-defined]
    return rows


def list_qrels(collection: Collection) -> CollectionFileQuerySet:
    rows = collection.files.filter(kind__in=JUDGED).usable().defer("faults")
    rows = rows.select_related("study")
    return rows.people_first()


class DescriptionForm(forms.ModelForm[CollectionFile]):
    class Meta:
        model = CollectionFile
        fields = list(DESCRIPTIONS)
        labels = {
            "name": gettext_lazy("Name"),
            "family": gettext_lazy("Family"),
            "made_by": gettext_lazy("Judged by"),
            "assessor": gettext_lazy("Assessor"),
            "round": gettext_lazy("Round"),
            "rule": gettext_lazy("Rule"),
        }
        help_texts = {
            "name": gettext_lazy("As tables and charts call it."),
            "family": gettext_lazy("Runs that share a model; they are left out together."),
            "made_by": gettext_lazy("Labels of a machine are never mixed with people's."),
            "assessor": "",
            "round": "",
            "rule": gettext_lazy("How several judgments became one grade, such as majority."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        for name in NOT_OF.get(CollectionFile.Kind(self.instance.kind), OF_RUNS):
            del self.fields[name]
        if "made_by" in self.fields:
            offer_choices(self, made_by=JUDGES)


class MergingForm(forms.Form):
    rule = forms.ChoiceField(choices=merging_rule_choices)
