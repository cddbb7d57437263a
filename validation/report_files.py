"""A study's report as files to take away: one page, records, or an archive of several files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.utils.translation import gettext_lazy as _

from presentation.formats import FORMATS
from validation.study_report import ReportRequest, study_report_document

# An archive of the same files is the same, whenever it was made.
TIME = (1980, 1, 1, 0, 0, 0)


def _only(request: ReportRequest, form: str) -> bytes:
    [content] = FORMATS[form](study_report_document(request)).values()
    return content


def _archive(request: ReportRequest, form: str, layout: str = "full") -> bytes:
    """All files of a form."""
    files = FORMATS[form](study_report_document(request, layout))
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
    "report.html": _(
        "One page with pictures, tables, methods and signatures; it needs no network."
    ),
    "report.json": _("Settings, every record, and the tables, for programs."),
    "report-markdown.zip": _("Markdown with pictures as SVG."),
    "report-latex.zip": _("LaTeX that pdflatex compiles: booktabs tables, pictures as PDF."),
    "report-csv.zip": _("Every record and every table, with full precision."),
    "lmstyle-tables.zip": _("LaTeX tables laid out as the LMStyle Benchmark's 1 to 3."),
    "g-eval-tables.zip": _("LaTeX tables laid out as G-Eval's, pooled and by item."),
}
TYPES = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "zip": "application/zip",
}


def type_of(name: str) -> str:
    """A file's media type."""
    return TYPES[name.rpartition(".")[2]]
