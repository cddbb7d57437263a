"""The relevance judgments of a study as files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.assignment_ids import assignment_ids
from annotation.models import Study
from annotation.study_files import (
    TEXT,
    Download,
    Offer,
    RowDownload,
    register_file,
    register_table,
)
from presentation.row_files import RowFile
from retrieval.exports.assessors import assessor_lines, provenance_rows
from retrieval.exports.qrels import has_qrels, judgment_source, qrel_rows, stream_qrels
from retrieval.exports.released_layout import write_released_layout

PART_BYTES = 1 << 20


def own_grades(study: Study) -> Iterator[str]:
    """Each annotator's grades; what cannot be written is refused before the first of them."""
    return assessor_lines(judgment_source(study))


def line_provenance(study: Study) -> RowFile:
    """What each line of `qrels.txt` was made of."""
    return provenance_rows(judgment_source(study), find_ids=assignment_ids)


def released_zip(study: Study) -> Iterator[bytes]:
    """The files of the released layout; written first, so that a refusal comes before them."""
    archive = BytesIO()
    with TemporaryDirectory() as folder:
        source = judgment_source(study)
        files = write_released_layout(source, Path(folder), find_ids=assignment_ids)
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            for path in files:
                packed.write(path, path.name)
    archive.seek(0)
    return iter(partial(archive.read, PART_BYTES), b"")


def _is_of_alternatives(study: Study) -> bool:
    return study.kind == Study.Kind.ALTERNATIVES


register_table(
    "qrels",
    RowDownload(_("qrels: topic, document and relevance"), qrel_rows),
    Offer(110, fits=has_qrels, is_of_judgments=True),
)
register_table(
    "provenance",
    RowDownload(
        _("what each line of the qrels was made of: judgments, with their HIT and assignment"),
        line_provenance,
        Permission.VIEW_WORKERS,
    ),
    Offer(120, fits=has_qrels, is_of_judgments=True),
)
register_file(
    "qrels.txt",
    Download(TEXT, _("TREC qrels"), stream_qrels),
    Offer(130, fits=has_qrels, is_of_judgments=True),
)
register_file(
    "qrels_jg.txt",
    Download(
        TEXT, _("each annotator's grades, of every round, as trec_eval reads qrels_jg"), own_grades
    ),
    Offer(140, fits=has_qrels, is_of_judgments=True),
)
register_file(
    "released_layout.zip",
    Download(
        "application/zip",
        _("pools with ticks and alternatives by number, in the layout of Fashion-AlterEval"),
        released_zip,
        permission=Permission.VIEW_WORKERS,
    ),
    Offer(150, fits=_is_of_alternatives, is_of_judgments=True),
)
