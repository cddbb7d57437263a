from itertools import chain
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.downloads import job_of
from annotation.pages.stages import stage_facts, study_for, study_page
from annotation.study_facts import AGREEMENT, RESULTS, VALIDATION, StudyFacts
from console.access import may, may_of
from console.pages.pictures import FORMS, picture_in
from presentation.documents import Document, Figure, Section, Table
from presentation.latex import escape_latex, table_latex
from presentation.writers import records_csv, write_table
from validation.heds import (
    DATASHEETS,
    UNKNOWN,
    Parts,
    fill_open,
    heds_document,
    heds_parts,
    is_open,
    open_fields,
    save_answers,
)
from validation.paper import (
    OF_PARTICIPANTS,
    kept_with_judgments,
    paper_document,
    paper_files,
    participants_section,
    result_sections,
)
from validation.result_kinds.validation import current_version
from validation.study_report import zip_files


@require_safe
def paper(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems. Rehearsals have no paper."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    if study.rehearsal_of_id is not None or not study.n_judgments:
        return study_page(request, study, "validation/paper")
    kinds = [RESULTS, AGREEMENT]
    if stage_facts(study)["has_scores"]:
        kinds.append(VALIDATION)
    jobs = [job for kind in kinds if (job := job_of(request, study, kind)) is not None]
    sections = result_sections(StudyFacts(study))
    context = {
        "jobs": jobs,
        "sections": [(section.title, _blocks(section)) for section in sections],
    }
    return study_page(request, study, "validation/paper", context)


def _blocks(section: Section) -> list[dict[str, object]]:
    """Paragraphs in one block; each table with its LaTeX."""
    texts = [part for part in section.parts if isinstance(part, str)]
    blocks: list[dict[str, object]] = []
    if texts:
        latex = "\n\n".join(map(escape_latex, texts))
        blocks.append({"texts": texts, "latex": latex, "plain": "\n\n".join(texts)})
    for part in section.parts:
        if isinstance(part, Table):
            blocks.append({"table": part, "latex": table_latex(part)})
        elif isinstance(part, Figure):
            blocks.append({"figure": part})
    return blocks


class DatasheetForm(forms.Form):
    """The questions of HEDS that the study cannot answer."""

    def __init__(self, parts: Parts, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(data, label_suffix="", **kwargs)
        self.sections = []
        for title, name, rows in parts:
            names = []
            for number, question, text in rows:
                if is_open(text):
                    names.append(f"{name}/{number}")
                    self.fields[names[-1]] = forms.CharField(
                        label=f"{number} {question}",
                        help_text=text.removesuffix(_(UNKNOWN)),
                        required=False,
                        max_length=10_000,
                        widget=forms.Textarea({"rows": 2, "class": "form-control"}),
                        # Only what this person changed is saved.
                        show_hidden_initial=True,
                    )
            self.sections.append((title, [self[one] for one in names]))


def _study_with_paper(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW_SYSTEMS
) -> Study:
    study = study_for(request, slug, permission)
    if study.rehearsal_of_id is not None:
        raise Http404(_("Answers of a rehearsal are no results for a paper."))
    return study


@require_safe
def participants(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems; amounts for those who may view money."""
    study = _study_with_paper(request, slug)
    facts = StudyFacts(study)
    section = participants_section(facts, with_money=may(request, Permission.VIEW_MONEY))
    parts = _heds_parts(facts)
    context = {
        "study": study,
        "may": may_of(request),
        "blocks": _blocks(section),
        "datasheets": list(DATASHEETS.items()),
        "form": DatasheetForm(parts, initial=study.datasheet_answers),
        "open_fields": open_fields(fill_open(parts, study.datasheet_answers)),
        "n_fields": sum(len(rows) for *_name, rows in parts),
    }
    return render(request, "validation/_paper_people.html", context)


def _heds_parts(facts: StudyFacts) -> Parts:
    is_tested = current_version(facts.study) is not None
    return kept_with_judgments(
        f"heds-{is_tested}", facts.study, lambda: heds_parts(facts, is_tested=is_tested)
    )


@require_POST
def answer_datasheet(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = _study_with_paper(request, slug, Permission.EDIT)
    form = DatasheetForm(_heds_parts(StudyFacts(study)), request.POST)
    if form.is_valid():
        answers = {name: form.cleaned_data[name] for name in form.changed_data}
        save_answers(study=study, answers=answers)
        messages.success(request, _("The answers are in the datasheet."))
    else:
        messages.error(request, _("The answers were not saved."), extra_tags="unsaved")
    return redirect("console:paper", slug)


@require_safe
def paper_file(request: HttpRequest, slug: str, name: str, form: str) -> HttpResponse:
    """Access: those who may view systems; amounts for those who may view money."""
    study = _study_with_paper(request, slug)
    with_money, facts = may(request, Permission.VIEW_MONEY), StudyFacts(study)
    if (name, form) == ("paper", "zip"):
        document = paper_document(study, with_money=with_money)
        heds = heds_document(study, current_version(study))
        files = paper_files(document, heds)
        return _attached(study, "paper.zip", zip_files(files), "application/zip")
    # Only what the file is made of is read.
    if name in OF_PARTICIPANTS:
        sections = [participants_section(facts, with_money=with_money)]
    else:
        sections = result_sections(facts)
    named = _named_parts(Document(study.slug, sections))
    part = next((one for one in named if one.name == name), None)
    if isinstance(part, Figure) and form in FORMS:
        return picture_in(
            form,
            request,
            name=f"{study.slug}-{name}",
            draw=lambda: part.chart,
            data=lambda: records_csv(list(part.rows)),
        )
    written = write_table(part, form) if isinstance(part, Table) else None
    if written is None:
        raise Http404(f"There is no file {name}.{form}.")
    content_type, content = written
    return _attached(study, f"{name}.{form}", content, content_type)


def _named_parts(document: Document) -> chain[Table | Figure]:
    return chain(document.tables, document.figures)


def _attached(study: Study, name: str, content: object, content_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{study.slug}-{name}"'
    return response
