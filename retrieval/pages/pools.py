import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, Prefetch
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.roles import Permission
from annotation.assignment_facts import list_launched_batches
from annotation.models import Study
from annotation.pages.import_forms import title_of
from console.access import may, person
from console.forms import PlainForm, offer_choices
from error_codes import CodedText
from results.models import Result
from results.pages import failed_arguments, name_download
from retrieval.answers.pools import FAULT_TITLES, PoolView
from retrieval.collections import STUDY_OF_POOL, request_study
from retrieval.derived_files import (
    MAKE_VECTORS,
    offered_models,
    request_vectors,
)
from retrieval.exceptions import CollectionUnfit, RetrievalError
from retrieval.file_readings import request_reading, subject_of
from retrieval.models import (
    Collection,
    CollectionFile,
    FileFit,
    PoolStudy,
    ResultFile,
    ResultType,
    SampleFit,
    result_collection,
)
from retrieval.models.collections import NAME_LENGTH
from retrieval.pages.candidates import PoolForm
from retrieval.pages.collections import collection_for, collection_page
from retrieval.pools.pool_files import pool_csv
from retrieval.result_kinds.pools import MAKE_POOL, request_pool, stored_pool
from retrieval.stored_files import describe_file, store_file
from work.models import Job

KIND = CollectionFile.Kind
SOURCES = (KIND.EMBEDDINGS, KIND.CATALOGUE)


@dataclass(frozen=True)
class SourceRow:
    file: CollectionFile

    @cached_property
    def fits(self) -> list[FileFit]:
        return list(self.file.fits.all())

    @cached_property
    def sample_fit(self) -> SampleFit | None:
        """Of the newest sample, whose targets a pool is of unless others are chosen."""
        return next(iter(self.file.sample_fits.all()), None)

    @property
    def is_foreign(self) -> bool:
        return any(not fit.n_known for fit in self.fits)

    @property
    def sentences(self) -> list[str]:
        documents = self._documents() if self.fits else []
        targets = [_of_sample(self.sample_fit)] if self.sample_fit else []
        topics = [self._topics()] if self.fits and self._tells_of_topics else []
        return [*documents, *targets, *topics]

    @property
    def _tells_of_topics(self) -> bool:
        """Whether topics of runs are its documents, or no sample says what targets are."""
        return self.sample_fit is None or any(fit.n_known_topics for fit in self.fits)

    def _documents(self) -> list[str]:
        lacking = [fit for fit in self.fits if fit.n_known < fit.n_documents]
        if not lacking:
            n = len(self.fits)
            text = ngettext(
                "Knows every document of the run.", "Knows every document of the {n} runs.", n
            )
            return [CodedText(text.format(n=n), code="documents_known")]
        return [_sentence(fit) for fit in lacking]

    def _topics(self) -> str:
        fit = max(self.fits, key=lambda fit: fit.n_topics)
        if not fit.n_known_topics:
            return CodedText(
                _("No topic is one of its documents: targets are shown by name."),
                code="no_topic_known",
            )
        return CodedText(
            _("{n} of {total} topics are among its documents.").format(
                n=f"{fit.n_known_topics:,}", total=f"{fit.n_topics:,}"
            ),
            code="topics_known",
        )


def _of_sample(fit: SampleFit) -> str:
    if not fit.n_known:
        text = _("No target of sample {number} is one of its documents: they are shown by name.")
        return CodedText(text.format(number=fit.sample.number), code="no_target_known")
    return CodedText(
        _("{n} of {total} targets of sample {number} are among its documents.").format(
            n=f"{fit.n_known:,}", total=f"{fit.n_targets:,}", number=fit.sample.number
        ),
        code="targets_known",
    )


def _sentence(fit: FileFit) -> str:
    if not fit.n_known:
        text = _("Knows no document of {run}: are their names the same in both files?")
        return CodedText(text.format(run=fit.run.name), code="no_document_known")
    return CodedText(
        _("Knows {n} of {total} documents of {run}.").format(
            n=f"{fit.n_known:,}", total=f"{fit.n_documents:,}", run=fit.run.name
        ),
        code="some_documents_known",
    )


def list_sources(collection: Collection) -> list[SourceRow]:
    fits = FileFit.objects.select_related("run").defer("run__faults", "run__warnings")
    rows = collection.files.filter(kind__in=SOURCES).defer("faults")
    newest = Result.objects.of(collection, ResultType.TARGETS)[:1]
    of_sample = SampleFit.objects.filter(sample__in=list(newest)).select_related("sample")
    related = (Prefetch("fits", fits), Prefetch("sample_fits", of_sample))
    return [SourceRow(file) for file in rows.prefetch_related(*related)]


class SourceForm(PlainForm):
    kind = forms.ChoiceField(
        label=gettext_lazy("What it is"),
        choices=[
            (KIND.CATALOGUE, gettext_lazy("the catalogue: titles and pictures")),
            (KIND.EMBEDDINGS, gettext_lazy("embeddings: a vector for each document")),
        ],
    )
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "A catalogue is a table with the columns docno, title and image, or a zip of it with "
            "the pictures. Embeddings are Parquet, or a zip with a .npy file and an .ids file "
            "that has a name a line."
        ),
        allow_empty_file=True,
    )
    name = forms.CharField(
        label=gettext_lazy("Name (optional)"), required=False, max_length=NAME_LENGTH
    )


class VectorsForm(forms.Form):
    of = forms.ChoiceField(label=gettext_lazy("Catalogue"))
    part = forms.ChoiceField(
        label=gettext_lazy("Made of"),
        choices=[
            ("texts", gettext_lazy("its texts: the column title")),
            ("pictures", gettext_lazy("its pictures")),
        ],
    )
    model = forms.ChoiceField(
        label=gettext_lazy("By the model"),
        help_text=gettext_lazy(
            "Of sentence-transformers. Whoever runs this site names further ones in "
            "EMBEDDING_MODELS; for pictures it takes one that reads them."
        ),
    )

    def __init__(
        self, files: Sequence[CollectionFile], models: Sequence[str], *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"label_suffix": "", "prefix": "vectors"} | kwargs)
        self.catalogues = {str(one.pk): one for one in files if one.kind == KIND.CATALOGUE}
        offer_choices(
            self,
            of=[(key, one.name) for key, one in self.catalogues.items()],
            model=[(name, name) for name in models],
        )

    def clean_of(self) -> CollectionFile:
        return self.catalogues[self.cleaned_data["of"]]


POOL, TARGETS = ResultType.POOL, ResultType.TARGETS
MOST_POOLS = 20
FORMS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
RELEVANCE_TEMPLATES = ("alternatives", "graded_relevance")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def pools(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit make pools."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.EDIT if is_post else Permission.VIEW)
    form = _form(collection, request.POST if is_post else None)
    if is_post and form.is_valid():
        try:
            request_pool(
                collection=collection,
                files=form.chosen_files,
                rules=form.rules,
                actor=person(request),
            )
        except RetrievalError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            return redirect("console:collection-pools", slug)
    return _page(request, collection, form, SourceForm())


def _usable(collection: Collection) -> list[CollectionFile]:
    return list(collection.files.usable().order_by("kind", "name"))


def _form(collection: Collection, data: Any = None) -> PoolForm:
    files = _usable(collection)
    samples = list(Result.objects.of(collection, TARGETS)[:MOST_POOLS])
    begin = {"targets": str(samples[0].pk)} if samples else {"targets": "runs"}
    catalogues = [file for file in files if file.kind == KIND.CATALOGUE]
    begin |= {"catalogue": str(catalogues[-1].pk)} if catalogues else {}
    return PoolForm(files, samples, data, initial=begin)


def _page(
    request: HttpRequest,
    collection: Collection,
    form: PoolForm,
    source_form: SourceForm,
    vectors_form: VectorsForm | None = None,
) -> HttpResponse:
    job = _job(collection)
    of_pool = job if job is not None and job.kind == MAKE_POOL else None
    versions = Result.objects.of(collection, POOL)
    if not form.is_bound:
        _begin(form, versions.first(), failed_arguments(of_pool))
    context = {
        "form": form,
        "source_form": source_form,
        "vectors_form": vectors_form or VectorsForm(form.catalogues, list(offered_models())),
        "may_make": may(request, Permission.EDIT),
        "versions": versions[:MOST_POOLS],
        "sources": list_sources(collection),
        "faulty": collection.files.filter(kind__in=SOURCES, n_faults__gt=0),
        "job": job,
    }
    refused = form.errors or source_form.errors or (vectors_form and vectors_form.errors)
    return collection_page(request, collection, "pools", context, status=422 if refused else 200)


def _begin(form: PoolForm, last: Result | None, failed: Mapping[str, Any]) -> None:
    if failed:
        form.begin_with(failed)
    elif last is not None:
        files = list(last.files.values_list("file", flat=True))
        form.begin_with({"settings": last.settings, "inputs": files}, since=last.created_at)


def _job(collection: Collection) -> Job | None:
    return (
        Job.objects.about(subject_of(collection))
        .of_kind(MAKE_POOL, STUDY_OF_POOL, MAKE_VECTORS)
        .first()
    )


@require_POST
def add_source(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit. Stores vectors or a catalogue, and has it read."""
    collection = collection_for(request, slug, Permission.EDIT)
    form = SourceForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            file = _store_source(request, collection, form.cleaned_data)
        except CollectionUnfit as refused:
            form.add_error("file", ValidationError(str(refused), code=refused.code))
        else:
            request_reading(collection=collection, files=[file], requested_by=person(request))
            return redirect("console:collection-pools", slug)
    return _page(request, collection, _form(collection), form)


@transaction.atomic
def _store_source(
    request: HttpRequest, collection: Collection, data: Mapping[str, Any]
) -> CollectionFile:
    actor = person(request)
    file = store_file(collection=collection, file=data["file"], actor=actor, kind=data["kind"])
    if name := data["name"].strip():
        describe_file(file=file, actor=actor, name=name)
    return file


@require_POST
def make_vectors(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit. Has a model make embeddings of a catalogue."""
    collection = collection_for(request, slug, Permission.EDIT)
    form = VectorsForm(_usable(collection), list(offered_models()), request.POST)
    if not form.is_valid():
        return _page(request, collection, _form(collection), SourceForm(), form)
    data = form.cleaned_data
    request_vectors(
        catalogue=data["of"], part=data["part"], model=data["model"], actor=person(request)
    )
    return redirect("console:collection-pools", slug)


def pool_for(
    request: HttpRequest, slug: str, number: int, permission: Permission = Permission.VIEW
) -> Result:
    collection = collection_for(request, slug, permission)
    catalogues = ResultFile.objects.filter(version=OuterRef("pk"), kind=KIND.CATALOGUE)
    versions = Result.objects.of(collection, POOL)
    versions = versions.annotate(has_catalogue=Exists(catalogues))
    version = get_object_or_404(versions, number=number)
    version.subject = collection
    return version


@require_safe
@never_cache
def pool(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    return _pool_page(request, pool_for(request, slug, number))


class PoolStudyForm(forms.Form):
    title = forms.CharField(label=gettext_lazy("Name of the study"), max_length=128)
    template = forms.ChoiceField(
        label=gettext_lazy("What annotators are asked"),
        help_text=gettext_lazy("Its protocol can be changed until it is launched."),
    )
    allowed = forms.MultipleChoiceField(
        label=gettext_lazy("Judge it although"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("A target without any candidate is left out of the study."),
    )

    def __init__(
        self, collection: Collection, faults: Sequence[str], *args: Any, **kwargs: Any
    ) -> None:
        initial = {"title": collection.name}
        super().__init__(*args, **{"label_suffix": "", "initial": initial} | kwargs)
        offer_choices(
            self,
            template=[(name, title_of(name)) for name in RELEVANCE_TEMPLATES],
            allowed=[(name, FAULT_TITLES[name]) for name in faults],
        )


def _pool_page(
    request: HttpRequest, version: Result, form: PoolStudyForm | None = None
) -> HttpResponse:
    view = PoolView(version, request.GET.get("topic", "").replace("\0", ""))
    may_edit = may(request, Permission.EDIT)
    names = [fault.name for fault in view.faults]
    context = {
        "view": view,
        "version": version,
        "form": (form or PoolStudyForm(result_collection(version), names)) if may_edit else None,
        "studies": _studies(version),
        "job": _job(result_collection(version)),
    }
    return collection_page(
        request,
        result_collection(version),
        "pool",
        context,
        stage="collection-pools",
    )


def _studies(version: Result) -> list[tuple[Study, bool]]:
    rows = list(PoolStudy.objects.filter(version=version).select_related("study"))
    launched = {batch.study for batch in list_launched_batches([row.study_id for row in rows])}
    return [(row.study, row.study_id in launched) for row in rows]


@require_POST
def make_study(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Access: those who may edit. Refused while a fault of the pool is not allowed."""
    version = pool_for(request, slug, number, Permission.EDIT)
    names = [fault.name for fault in PoolView(version).faults]
    form = PoolStudyForm(result_collection(version), names, request.POST)
    if form.is_valid():
        try:
            request_study(version=version, actor=person(request), **form.cleaned_data)
        except RetrievalError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("The study is being made."))
            return redirect("console:collection-pool", slug, number)
    return _pool_page(request, version, form)


@require_safe
def pool_file(request: HttpRequest, slug: str, number: int, form: str) -> HttpResponse:
    """Access: those who may export. The pool as the command's files hold it."""
    version = pool_for(request, slug, number, Permission.EXPORT)
    if form not in FORMS:
        raise Http404(f"There is no pool as {form}.")
    response = StreamingHttpResponse(_parts(version, form), content_type=FORMS[form])
    name_download(request, response, result_collection(version), f"{slug}-pool-{number}.{form}")
    return response  # type: ignore[return-value]


def _parts(version: Result, form: str) -> Iterator[str]:
    pool = stored_pool(version)
    if form == "csv":
        yield from pool_csv(pool)
    else:
        yield f"{json.dumps(pool.record(), indent=1)}\n"
