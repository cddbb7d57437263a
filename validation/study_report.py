from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.study_facts import SIMULATED, simulation_notice
from metrics.exceptions import NothingToValidate
from metrics.models import Score
from metrics.result_kinds.scores import ScoresKind
from metrics.score_comparisons import prompt_effects, system_scores
from presentation.documents import Document, Figure, Section
from presentation.numbers import plain_records, plain_values
from presentation.writers import FORMATS
from results.models import Result
from results.shown import ShownResult
from validation.documents.full import appendix, full_report, signed_document
from validation.documents.layouts import (
    e2e,
    e2e_methods,
    g_eval,
    lmstyle_correlations,
    lmstyle_ratings,
    lmstyle_scores,
)
from validation.documents.metric_tables import sensitivity_table
from validation.result_kinds.validation import make_validation
from validation.versions import StoredResults, find_validation

PROMPTS = ("standard", "enhanced")


@dataclass(frozen=True)
class ReportRequest:
    """`number` is that of a stored version (None: the current state); `datasheet` are sections of
    the full report on how the study was made."""

    study: Study
    number: int | None = None
    prompts: tuple[str, str] = PROMPTS
    with_variants: bool = False
    datasheet: Sequence[Section] = ()

    @cached_property
    def version(self) -> Result:
        """The stored version; without a number the current one, made if needed."""
        if self.number is None:
            return make_validation(study=self.study).version
        return find_validation(self.study, self.number)

    @property
    def results(self) -> StoredResults:
        return StoredResults(self.version, with_variants=self.with_variants)

    @property
    def title(self) -> str:
        return _("Which metric agrees with human ratings: %(name)s, report %(number)s") % {
            "name": self.study.title or self.study.slug,
            "number": self.version.number,
        }


def study_report_document(request: ReportRequest, layout: str = "full") -> Document:
    try:
        document = LAYOUTS[layout](request)
    except NothingToValidate as nothing:
        if layout != "full" or not is_of_scores(request.study, nothing):
            raise
        document = of_scores(request)
    notice = simulation_notice(request.study)
    if not notice:
        return document
    sections = [section.mark(_(SIMULATED)) for section in document.sections]
    return replace(document, answer=f"{notice} {document.answer}".strip(), sections=sections)


def full(request: ReportRequest) -> Document:
    return full_report(request.results, title=request.title, datasheet=request.datasheet)


def lmstyle(request: ReportRequest) -> Document:
    results = request.results
    scores = [plain_values(row) for row in system_scores(request.study)]
    tables = [lmstyle_correlations(results), lmstyle_scores(scores), lmstyle_ratings(results)]
    other = sensitivity_table(results)
    sections = [
        Section(_("Metrics, systems and human ratings"), tables),
        Section(_("What other policies would give"), [other] if other.rows else []),
    ]
    return signed_document(results, request.title, sections)


def of_g_eval(request: ReportRequest) -> Document:
    results = request.results
    levels = [level for level in ("pooled", "item") if level in results.levels]
    sections = [Section(_("Metrics by question"), [g_eval(results, level) for level in levels])]
    return signed_document(results, request.title, sections)


def of_e2e(request: ReportRequest) -> Document:
    """E2E's comparison of two prompts; needs scores but no judgments."""
    study, prompts = request.study, request.prompts
    effects = [effect.record() for effect in prompt_effects(study, prompts=prompts)]
    scores = [plain_values(row) for row in system_scores(study)]
    tables = [e2e(effects, prompts), lmstyle_scores(scores)]
    methods = e2e_methods(effects, prompts)
    return Document(
        title=_("What a prompt changes: %(study)s") % {"study": study.title or study.slug},
        sections=[
            Section(_("Prompts compared"), tables),
            Section(_("Methods"), [methods]),
            Section(_("Signatures"), [appendix(tables)]),
        ],
        records={"systems": scores, "prompts": effects},
        about={"study": study.slug, "prompts": list(prompts), "methods": methods},
    )


def is_of_scores(study: Study, nothing: NothingToValidate) -> bool:
    """Whether a study that cannot be validated has scores to report, which nobody has judged."""
    return nothing.code == "no_judgments" and Score.objects.filter(run__study=study).exists()


def of_scores(request: ReportRequest) -> Document:
    shown = ShownResult(ScoresKind().require(request.study))
    figures = [
        Figure(one.name, one.title, one.words, one.draw, plain_records(one.frame))
        for one in shown.charts
    ]
    return Document(
        title=_("Scores: %(study)s") % {"study": request.study.title or request.study.slug},
        answer=shown.answer,
        sections=[
            Section(_("Tables"), list(shown.tables.values())),
            Section(_("Figures"), figures),
            Section(_("Signature"), [shown.signature, *shown.notes]),
        ],
        records=shown.rows,
        about={"study": request.study.slug},
    )


LAYOUTS: dict[str, Callable[[ReportRequest], Document]] = {
    "full": full,
    "lmstyle": lmstyle,
    "g-eval": of_g_eval,
    "e2e": of_e2e,
}


# An archive of the same files is the same, whenever it was made.
TIME = (1980, 1, 1, 0, 0, 0)


def _only(request: ReportRequest, form: str) -> bytes:
    [content] = FORMATS[form](study_report_document(request)).values()
    return content


def _archive(request: ReportRequest, form: str, layout: str = "full") -> bytes:
    return zip_files(FORMATS[form](study_report_document(request, layout)))


def zip_files(files: Mapping[str, bytes]) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(ZipInfo(name, TIME), content, ZIP_DEFLATED)
    return buffer.getvalue()


REPORT_FILES: dict[str, Callable[[ReportRequest], bytes]] = {
    "report.html": partial(_only, form="html"),
    "report.json": partial(_only, form="json"),
    "report-markdown.zip": partial(_archive, form="md"),
    "report-latex.zip": partial(_archive, form="latex"),
    "report-csv.zip": partial(_archive, form="csv"),
    "lmstyle-tables.zip": partial(_archive, form="latex", layout="lmstyle"),
    "g-eval-tables.zip": partial(_archive, form="latex", layout="g-eval"),
}
ABOUT = {
    "report.html": gettext_lazy(
        "One page with pictures, tables, methods and signatures; it needs no network."
    ),
    "report.json": gettext_lazy("Settings, every record, and the tables, for programs."),
    "report-markdown.zip": gettext_lazy("Markdown with pictures as SVG."),
    "report-latex.zip": gettext_lazy(
        "LaTeX that pdflatex compiles: booktabs tables, pictures as PDF."
    ),
    "report-csv.zip": gettext_lazy("Every record and every table, with full precision."),
    "lmstyle-tables.zip": gettext_lazy("LaTeX tables laid out as the LMStyle Benchmark's 1 to 3."),
    "g-eval-tables.zip": gettext_lazy("LaTeX tables laid out as G-Eval's, pooled and by item."),
}
TYPES = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "zip": "application/zip",
}


def type_of(name: str) -> str:
    return TYPES[name.rpartition(".")[2]]
