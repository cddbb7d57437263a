"""Pages of results that are shown as declared: form, answer, charts and tables.

An app that has subjects registers how their pages are shown, and names the views in its addresses:

    register_subject("collection", collection_for)
    pages = SubjectPages(collection_page, "retrieval/base.html", "console:collection-table")
    register_pages("collection", pages)

    results = LazyPackage("results")
    path("reuse/", results.pages.result_page, {"subject": "collection", "kind": "reuse"})
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import models
from django.forms import BoundField
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.audit import record
from accounts.models import User
from accounts.roles import Permission
from console.access import may, person
from console.api.endpoint import find_subject
from console.pages.pictures import FORMS as PICTURE_FORMS, picture_in
from error_codes import CodedError
from presentation.row_files import frame_csv
from presentation.writers import Content, write_table
from results.computing import name_subject, request_result
from results.kinds import Chart, ResultKind, result_kinds
from results.models import Result
from results.settings import list_settings
from results.shown import ShownResult
from work.models import Job


class ResultForm(forms.Form):
    def __init__(
        self, kind: ResultKind[Any], subject: models.Model, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(data, label_suffix="")
        self.kind, self.subject = kind, subject
        self.offered = kind.offer_inputs(subject)
        self.declared = list_settings(kind.settings)
        self.advanced: list[str] = []
        for name, one in kind.inputs.items():
            if rows := self.offered.get(name, []):
                choices = [(str(row.pk), kind.name_input(row)) for row in rows]
                self.fields[name] = one.form_field(choices)
            elif one.is_required:
                self.fields[name] = one.form_field([])
        for name, (described, default) in self.declared.items():
            made = described.form_fields(name, default, subject)
            self.fields.update(made)
            self.advanced += made if described.is_advanced else ()

    def begin_with(self, arguments: Mapping[str, Any]) -> None:
        settings, keys = arguments.get("settings", {}), set(arguments.get("inputs", ()))
        for name, one in self.kind.inputs.items():
            rows = self.offered.get(name, [])
            if one.is_subset:
                names = settings.get(one.stored_as) or ()
                chosen = [str(row.pk) for row in rows if row.name in names]
            else:
                chosen = [str(row.pk) for row in rows if row.pk in keys]
            self.initial[name] = chosen if one.several else next(iter(chosen), "")
        for name, (described, _default) in self.declared.items():
            if name in settings:
                self.initial.update(described.begin(name, settings[name]))

    def begin_with_result(self, result: Result, keys: Sequence[int]) -> None:
        self.begin_with({"settings": result.settings, "inputs": keys})
        for name, one in self.kind.inputs.items():
            if one.several and not one.is_subset and name in self.initial:
                self.initial[name] += [
                    str(row.pk)
                    for row in self.offered.get(name, [])
                    if row.created_at > result.created_at
                ]

    def prefer(self, name: str, keys: Sequence[int | None]) -> None:
        rows = [row.pk for row in self.offered.get(name, []) if row.pk in keys]
        if rows and name in self.kind.inputs and not self.kind.inputs[name].several:
            self.initial[name] = str(rows[0])

    @property
    def problem_when_empty(self) -> str:
        """Why nothing can be computed yet; empty if something can."""
        return self.kind.explain_missing(self.offered)

    @property
    def basic_fields(self) -> list[BoundField]:
        return [field for field in self if field.name not in self.advanced]

    @property
    def advanced_fields(self) -> list[BoundField]:
        return [field for field in self if field.name in self.advanced]

    @property
    def has_advanced_errors(self) -> bool:
        return any(field.errors for field in self.advanced_fields)

    @property
    def chosen(self) -> dict[str, list[Any]]:
        chosen: dict[str, list[Any]] = {}
        for name in self.kind.inputs:
            value: str | list[str] = self.cleaned_data.get(name) or []
            keys = [value] if isinstance(value, str) else value
            rows = {str(row.pk): row for row in self.offered.get(name, [])}
            chosen[name] = [rows[key] for key in keys]
        return chosen

    @property
    def settings(self) -> dict[str, Any]:
        return {
            name: described.read(name, self.cleaned_data, default)
            for name, (described, default) in self.declared.items()
        }

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        try:
            self.kind.check_settings(self.settings)
        except CodedError as refused:
            self.add_error(self._find_field(refused), ValidationError(str(refused), refused.code))
        return data

    def _find_field(self, refused: CodedError) -> str | None:
        for name in self.kind.fields_of_errors.get(refused.code, ()):
            if name in self.fields and (name != "others" or self.cleaned_data.get("others")):
                return name
        return None


@dataclass(frozen=True)
class SubjectPages:
    """The pages of a kind of subjects: its template `result` extends `results/result.html`.

    Attributes
    ----------
    show : callable
        Renders a page from the request, the subject, the template's name and its context, with the
        keyword arguments `stage` and `status`.
    base : str
        The template that pages extend, with the blocks `heading` and `content`.
    table : str
        The name of the address of tables.
    """

    show: Callable[..., HttpResponse]
    base: str
    table: str


class HasNumber(Protocol):
    number: Any


Numbered = TypeVar("Numbered", bound=HasNumber)
_pages: dict[str, SubjectPages] = {}


def register_pages(subject: str, pages: SubjectPages) -> None:
    _pages[subject] = pages


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def result_page(
    request: HttpRequest, slug: str, subject: str, kind: str, page: str = "result"
) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    permission = Permission.ANALYSE if request.method == "POST" else Permission.VIEW
    found = find_subject(subject, request, slug, permission)
    declared = find_kind(found, kind)
    form = ResultForm(declared, found, request.POST if request.method == "POST" else None)
    if form.is_bound and request_by_form(form, person(request)):
        messages.success(request, _("Computing in the background; this page follows it."))
        return redirect(request.path)
    result, context = page_context(request, form)
    pages = _pages[subject]
    context |= {
        "base": pages.base,
        "title": declared.title,
        "view": ShownResult(result) if result else None,
        "slug": slug,
        "table_address": pages.table,
    }
    status = 422 if form.errors else 200
    return pages.show(request, found, "result", context, stage=f"{subject}-{page}", status=status)


def page_context(request: HttpRequest, form: ResultForm) -> tuple[Result | None, dict[str, Any]]:
    job = find_job(form.subject, form.kind.job)
    results = Result.objects.of(form.subject, form.kind.name)
    result = choose_version(request, results)
    if not form.is_bound:
        begin_form(form, result, failed_arguments(job))
    return result, {
        "form": form if may(request, Permission.ANALYSE) else None,
        "problem": "" if result else form.problem_when_empty,
        "versions": results,
        "job": job,
    }


@require_safe
def picture(
    request: HttpRequest, slug: str, subject: str, kind: str, chart: str, form: str
) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. A chart of a result, as
    specification, data or file."""
    found = find_subject(subject, request, slug, Permission.VIEW)
    charts = {one.name: one for one in ShownResult(find_result(request, found, kind)).charts}
    return draw_chart(request, charts.get(chart), name=f"{slug}-{chart}", form=form)


def draw_chart(request: HttpRequest, chart: Chart | None, *, name: str, form: str) -> HttpResponse:
    if chart is None or form not in PICTURE_FORMS:
        raise Http404(f"There is no chart {name}.{form}.")
    return picture_in(
        form, request, name=name, draw=chart.draw, data=lambda: frame_csv(chart.frame)
    )


@require_safe
def table(
    request: HttpRequest, slug: str, subject: str, kind: str, name: str, form: str
) -> HttpResponse:
    """Access: those who may export. A table of a result, or all of them as JSON."""
    found = find_subject(subject, request, slug, Permission.EXPORT)
    result = find_result(request, found, kind)
    content_type, content = _write_table(ShownResult(result), name, form)
    response = HttpResponse(content, content_type=content_type)
    name_download(request, response, found, f"{slug}-{kind}-{result.number}-{name}.{form}")
    return response


def name_download(
    request: HttpRequest, response: HttpResponseBase, subject: Any, name: str, **details: Any
) -> None:
    """Give a response the name of its file, and put a GET in the team's audit log."""
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    if request.method == "GET":
        record(
            team=subject.team,
            actor=person(request),
            action="export",
            subject=subject.slug,
            details={"file": name} | details,
        )


def find_kind(subject: models.Model, name: str) -> ResultKind[Any]:
    kind = result_kinds(str(subject._meta.model_name)).get(name)
    if kind is None or not kind.tables:
        raise Http404(f"There are no results called {name}.")
    return kind


def find_result(request: HttpRequest, subject: models.Model, kind: str) -> Result:
    result = choose_version(request, Result.objects.of(subject, find_kind(subject, kind).name))
    if result is None:
        raise Http404(f"There is no result of {kind} yet.")
    return result


def choose_version(
    request: HttpRequest, versions: Iterable[Numbered], *, parameter: str = "version"
) -> Numbered | None:
    """The one whose number the address has, or the first; 404 for another number."""
    number = request.GET.get(parameter)
    if number is None:
        return next(iter(versions), None)
    version = next((one for one in versions if str(one.number) == number), None)
    if version is None:
        raise Http404(f"There is no result {number}.")
    return version


def find_job(subject: models.Model, kind: str) -> Job | None:
    """The last job of that kind, unless it is done: its result is displayed then."""
    job = Job.objects.about(name_subject(subject)).of_kind(kind).first()
    return None if job is None or job.state == Job.State.DONE else job


def failed_arguments(job: Job | None) -> dict[str, Any]:
    return dict(job.arguments) if job is not None and job.state == Job.State.FAILED else {}


def request_by_form(form: ResultForm, actor: User) -> bool:
    if not form.is_valid():
        return False
    try:
        request_result(
            kind=form.kind,
            subject=form.subject,
            chosen=form.chosen,
            settings=form.settings,
            actor=actor,
        )
    except form.kind.refusals as refused:
        form.add_error(None, ValidationError(str(refused), code=getattr(refused, "code", "")))
    return not form.errors


def begin_form(form: ResultForm, result: Result | None, failed: Mapping[str, Any]) -> None:
    if failed:
        form.begin_with(failed)
    elif result is not None:
        form.begin_with_result(result, form.kind.list_kept_inputs(result))
    else:
        for name, keys in form.kind.prefer_inputs(form.subject).items():
            form.prefer(name, keys)


def _write_table(shown: ShownResult, name: str, form: str) -> tuple[str, Content]:
    table = shown.tables.get(name)
    if form == "json" and (name == "all" or table is not None):
        rows = shown.export() if name == "all" else shown.rows[name.replace("-", "_")]
        return "application/json", [json.dumps(rows, indent=1)]
    if (file := write_table(table, form)) is None:
        raise Http404(f"There is no table {name}.{form}.")
    return file
