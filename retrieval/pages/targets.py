from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.roles import Permission
from annotation.uploads import plain_file_name
from console.access import may, person
from console.forms import offer_choices
from presentation.row_files import csv_parts
from results.models import Result
from results.pages import failed_arguments
from retrieval.answers.pools import list_strata, sentence_of
from retrieval.exceptions import RetrievalError, SampleUnfit
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile, ResultType, SampledTarget
from retrieval.pages.collections import collection_for, collection_page
from retrieval.pools.catalogue import read_target_values
from retrieval.pools.sampling import COLUMNS, Allocation, require_possible
from retrieval.result_kinds.pools import SAMPLE_TARGETS, SOURCES, request_sample
from stats.arguments import Floats
from stats.ranking.query_difficulty import Predictor
from work.models import Job

TARGETS = ResultType.TARGETS
MOST_SAMPLES = 20
MOST_BYTES, MOST_TARGETS = 5 * 1024 * 1024, 50_000
USUAL_TARGETS = 200
COLUMN = "column"
PREDICTORS = {
    "max": gettext_lazy("the highest score"),
    "mean": gettext_lazy("the mean of the first scores"),
    "sigma_k": gettext_lazy("the spread of the first scores (sigma k)"),
    "sigma_max": gettext_lazy("the greatest spread at any depth (sigma max)"),
    "n_sigma": gettext_lazy("the spread of the scores near the first (n(sigma x%))"),
    "nqc": gettext_lazy("NQC: the spread, over the catalogue's score"),
    "wig": gettext_lazy("WIG: how far the first scores exceed the catalogue's"),
    "smv": gettext_lazy("SMV: magnitude and spread, over the catalogue's score"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def targets(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit draw."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.EDIT if is_post else Permission.VIEW)
    sources = list(collection.files.usable().filter(kind__in=SOURCES).order_by("kind", "name"))
    form = TargetsForm(sources, *((request.POST, request.FILES) if is_post else ()))
    if is_post and form.is_valid():
        try:
            request_sample(
                collection=collection,
                files=form.chosen_files,
                rules=form.rules,
                actor=person(request),
            )
        except RetrievalError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            return redirect("console:collection-targets", slug)
    return _page(request, collection, form)


class TargetsForm(forms.Form):
    n = forms.IntegerField(
        label=gettext_lazy("Targets to draw"), min_value=1, max_value=MOST_TARGETS
    )
    by = forms.ChoiceField(
        label=gettext_lazy("How hard a target is, by"),
        help_text=gettext_lazy(
            "Targets are sorted by it into groups, so that easy and hard ones are both drawn. The "
            "scores of a system's list predict it; a column of yours may say it."
        ),
    )
    source = forms.ChoiceField(
        label=gettext_lazy("Scores of"),
        required=False,
    )
    file = forms.FileField(
        label=gettext_lazy("File with the column"),
        required=False,
        help_text=gettext_lazy(
            "CSV with a column target, which names each target's document, and the one to use; "
            "with a column topic too, where topics have other names."
        ),
    )
    column = forms.CharField(
        label=gettext_lazy("Name of the column"), required=False, max_length=100
    )
    strata = forms.IntegerField(
        label=gettext_lazy("Groups (strata)"),
        min_value=1,
        max_value=100,
        initial=4,
        help_text=gettext_lazy("Each has as many targets, from the lowest value to the highest."),
    )
    allocation = forms.ChoiceField(
        label=gettext_lazy("Drawn of each group"),
        choices=[
            ("equal", gettext_lazy("the same number")),
            ("proportional", gettext_lazy("in proportion to its size")),
        ],
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=0,
        max_value=2**31 - 1,
        initial=7,
        help_text=gettext_lazy("Another number draws other targets; the same, the same."),
    )

    def __init__(self, sources: Sequence[CollectionFile], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.sources = {str(file.pk): file for file in sources}
        predictors = [(name, PREDICTORS[name]) for name in get_args(Predictor)]
        offer_choices(
            self,
            by=[*predictors, (COLUMN, _("a column of a file"))],
            source=[(key, file.name) for key, file in self.sources.items()],
        )
        self._begin(sources)

    def _begin(self, sources: Sequence[CollectionFile]) -> None:
        by, n = self.fields["by"], self.fields["n"]
        if not sources:
            by.initial = COLUMN
            return
        # NQC divides by the score of the whole catalogue, which a run does not have.
        first = sources[0]
        is_run = first.kind == CollectionFile.Kind.RUN
        by.initial = "sigma_k" if is_run else "nqc"
        n_targets = first.n_topics if is_run else first.n_documents
        n.initial = max(1, min(USUAL_TARGETS, n_targets))
        n.help_text = _("{name} has {n}.").format(name=first.name, n=f"{n_targets:,}")

    def begin_with(self, arguments: Mapping[str, Any]) -> None:
        rules, files = arguments.get("settings", {}), arguments.get("inputs", ())
        names = ("n", "strata", "allocation", "seed", "column")
        values = {name: rules[name] for name in names if name in rules}
        values["by"] = rules.get("predictor", COLUMN)
        if source := next((str(key) for key in files if str(key) in self.sources), ""):
            values["source"] = source
        self.initial = values

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("by") == COLUMN:
            self._read_column(data)
        elif data.get("by") and not data.get("source") and "source" not in self.errors:
            self.add_error(
                "source",
                ValidationError(
                    _("A predictor looks at the scores of a run or of vectors."), code="no_scores"
                ),
            )
        elif data.get("by") and data.get("source"):
            self._require_enough(data)
        return data

    def _require_enough(self, data: dict[str, Any]) -> None:
        file, n, strata = self.sources[data["source"]], data.get("n"), data.get("strata")
        there = file.n_topics if file.kind == CollectionFile.Kind.RUN else file.n_documents
        if n and n > there:
            text = ngettext("{name} has {there} target.", "{name} has {there} targets.", there)
            problem = text.format(name=file.name, there=f"{there:,}")
            self.add_error("n", ValidationError(problem, code="too_few_targets"))
        elif n and strata and strata > n:
            self.add_error(
                "strata",
                ValidationError(
                    _("There are more strata than targets to draw."), code="too_many_strata"
                ),
            )

    def _require_possible(self, values: Floats, column: str) -> None:
        data = self.cleaned_data
        if data.get("n") and data.get("strata"):
            try:
                allocation: Allocation = data.get("allocation", "equal")
                require_possible(
                    data["n"], data["strata"], values, allocation=allocation, column=column
                )
            except SampleUnfit as refused:
                self.add_error(refused.field, ValidationError(str(refused), code=refused.code))

    def _read_column(self, data: dict[str, Any]) -> None:
        file, column = data.get("file"), data.get("column", "").strip()
        if not file:
            self.add_error(
                "file",
                ValidationError(_("Choose a file that has the column."), code="file_missing"),
            )
        elif not column:
            self.add_error("column", ValidationError(_("Name the column."), code="column_missing"))
        elif file.size > MOST_BYTES:
            self.add_error("file", _("It has more than {n} MiB.").format(n=MOST_BYTES // 1024**2))
        else:
            try:
                data["values"] = _values_of(file, column)
                numbers = [value for _topic, _docno, value in data["values"] if value is not None]
                self._require_possible(np.array(numbers), column)
            except RetrievalError as refused:
                self.add_error("file", ValidationError(str(refused), code=refused.code))

    @property
    def chosen_files(self) -> list[CollectionFile]:
        data = self.cleaned_data
        return [] if data["by"] == COLUMN else [self.sources[data["source"]]]

    @property
    def rules(self) -> dict[str, Any]:
        data = self.cleaned_data
        rules = {name: data[name] for name in ("n", "strata", "allocation", "seed")}
        if data["by"] != COLUMN:
            return rules | {"predictor": data["by"]}
        return rules | {
            "column": data["column"].strip(),
            "values": data["values"],
            "signature": f"file:{data['file'].name}",
        }


def _page(request: HttpRequest, collection: Collection, form: TargetsForm) -> HttpResponse:
    versions = list(Result.objects.of(collection, TARGETS)[:MOST_SAMPLES])
    number = request.GET.get("sample", "")
    requested = next((one for one in versions if str(one.number) == number), None)
    version = requested or (versions[0] if versions else None)
    job = Job.objects.about(subject_of(collection)).of_kind(SAMPLE_TARGETS).first()
    if not form.is_bound and (arguments := failed_arguments(job)):
        form.begin_with(arguments)
    context = {
        "form": form if may(request, Permission.EDIT) else None,
        "versions": versions,
        "version": version,
        "answer": sentence_of(version) if version else "",
        "strata": list_strata(version) if version else [],
        "notes": version.notes if version else [],
        "job": job,
    }
    return collection_page(request, collection, "targets", context)


@require_safe
def sample_file(request: HttpRequest, slug: str, number: int) -> StreamingHttpResponse:
    """Access: those who may export. The targets, as pool_candidates reads them."""
    collection = collection_for(request, slug, Permission.EXPORT)
    version = get_object_or_404(Result.objects.of(collection, TARGETS), number=number)
    values = SampledTarget.objects.filter(version=version).values_list(
        "topic", "docno", "stratum", "value", "inclusion"
    )
    response = StreamingHttpResponse(csv_parts(COLUMNS, values), content_type="text/csv")
    response["Content-Disposition"] = f'attachment; filename="{slug}-targets-{number}.csv"'
    return response


def _values_of(file: Any, column: str) -> list[tuple[str, str, float | None]]:
    with TemporaryDirectory(prefix="assay-targets-") as folder:
        path = Path(folder) / plain_file_name(file.name)
        path.write_bytes(file.read())
        targets, values = read_target_values(path, column)
    numbers = (None if np.isnan(value) else float(value) for value in values)
    return [(one.topic, one.docno, value) for one, value in zip(targets, numbers, strict=True)]
