"""What a study's page offers to take away."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from django.db.models import Exists
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.agreement_records import agreement_records
from annotation.exports import (
    check_rows,
    comment_rows,
    item_rows,
    judgment_rows,
    label_rows,
    written_rows,
)
from annotation.models import (
    CheckAnswer,
    DisputeComment,
    ItemSample,
    LabelSet,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.simulated_answers import has_simulated
from annotation.study_results import (
    AGREEMENT,
    VALIDATION,
    require_agreement,
)
from console.dataset_folder import dataset_zip
from console.study_results import require_validation
from console.validation_view import correlations_of
from hits.exports import marketplace_ids, submission_rows
from hits.models import PracticeAnswer
from hits.practice_exports import practice_answer_rows
from metrics.exports import score_rows
from metrics.models import ScoringRun
from presentation.row_files import FORMS, RowFile
from retrieval.exports.assessors import assessor_lines, provenance_rows
from retrieval.exports.qrels import has_qrels, judgment_source, qrel_rows, stream_qrels
from retrieval.exports.released_layout import write_released_layout
from validation.analysis.records import plain
from validation.exports import sampled_item_rows
from validation.rows import StoredResults

PART_BYTES = 1 << 20


@dataclass(frozen=True)
class Download:
    """A file: its type, what it holds, its content bit by bit, the result it waits for, if any, and
    what one must be allowed beside exporting."""

    content_type: str
    about: str | Promise
    write: Callable[[Study], Iterator[str] | Iterator[bytes]]
    result: str = ""
    permission: Permission = Permission.EXPORT


def agreement_json(study: Study) -> Iterator[str]:
    """Coefficients with what they rest on, and every pair of annotators."""
    version = require_agreement(study)
    source = {"study": study.slug, "simulated": has_simulated(study)}
    yield json.dumps(source | agreement_records(version), indent=1)


def validation_json(study: Study) -> Iterator[str]:
    """Every correlation, at every level and in every condition; none while scores are missing."""
    outcome = require_validation(study)
    simulated = has_simulated(study)
    source = {"study": study.slug, "input": outcome.fingerprint, "simulated": simulated}
    if (version := outcome.version) is None:
        empty = {"report": None, "reason": outcome.reason} | source
        yield json.dumps(empty | {"rows": []}, indent=1)
        return
    results = StoredResults(version, with_variants=True)
    names = ("aggregation", "round", "n_resamples", "seed")
    rules = {name: version.rules[name] for name in names}
    rows = [plain(row) for row in correlations_of(results)]
    yield json.dumps({"report": version.number} | source | rules | {"rows": rows}, indent=1)


def own_grades(study: Study) -> Iterator[str]:
    """Each annotator's grades; what cannot be written is refused before the first of them."""
    return assessor_lines(judgment_source(study))


def line_provenance(study: Study) -> RowFile:
    """What each line of `qrels.txt` was made of."""
    return provenance_rows(judgment_source(study), find_ids=marketplace_ids)


def released_zip(study: Study) -> Iterator[bytes]:
    """The files of the released layout; written first, so that a refusal comes before them."""
    archive = BytesIO()
    with TemporaryDirectory() as folder:
        source = judgment_source(study)
        files = write_released_layout(source, Path(folder), find_ids=marketplace_ids)
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            for path in files:
                packed.write(path, path.name)
    archive.seek(0)
    return iter(partial(archive.read, PART_BYTES), b"")


JSON, TEXT = "application/json", "text/plain; charset=utf-8"


@dataclass(frozen=True)
class RowDownload:
    """A table that is offered in every form: what it holds, and what reading it needs beside
    exporting."""

    about: str | Promise
    rows: Callable[[Study], RowFile]
    permission: Permission = Permission.EXPORT

    def forms(self, name: str) -> dict[str, Download]:
        """The download in each form, by the file's name."""
        return {
            f"{name}.{form}": Download(
                content_type, self.about, self._writer(write), permission=self.permission
            )
            for form, (content_type, write) in FORMS.items()
        }

    def _writer(
        self, write: Callable[[RowFile], Iterator[str] | Iterator[bytes]]
    ) -> Callable[[Study], Iterator[str] | Iterator[bytes]]:
        return lambda study: write(self.rows(study))


ROW_DOWNLOADS = {
    "judgments": RowDownload(_("every judgment but rejected ones, one long table"), judgment_rows),
    "submissions": RowDownload(
        _("every submission: who, when, how long, reason, comment, status and flag"),
        submission_rows,
        Permission.VIEW_WORKERS,
    ),
    "written": RowDownload(
        _("every answer in words, and every reason"), written_rows, Permission.VIEW_WORKERS
    ),
    "checks": RowDownload(
        _("every answer to a quality check"), check_rows, Permission.VIEW_WORKERS
    ),
    "practice": RowDownload(
        _("every answer of practice, which is no submission, beside what is right"),
        practice_answer_rows,
        Permission.VIEW_WORKERS,
    ),
    "comments": RowDownload(_("what colleagues said about disputes"), comment_rows),
    "items": RowDownload(_("every candidate with what annotators were shown"), item_rows),
    "labels": RowDownload(_("the labels of every label set"), label_rows),
    "scores": RowDownload(_("every score with its signature"), score_rows),
    "sampled": RowDownload(
        _("ratings beside scores, with the batch and the probability of each item"),
        sampled_item_rows,
    ),
    "qrels": RowDownload(_("qrels: topic, document and relevance"), qrel_rows),
    "provenance": RowDownload(
        _("what each line of the qrels was made of: judgments, with their HIT and assignment"),
        line_provenance,
        Permission.VIEW_WORKERS,
    ),
}
DATASET, RELEASED = "dataset.zip", "released_layout.zip"
DOWNLOADS = {
    **{
        name: download
        for base, table in ROW_DOWNLOADS.items()
        for name, download in table.forms(base).items()
    },
    "qrels.txt": Download(TEXT, _("TREC qrels"), stream_qrels),
    "qrels_jg.txt": Download(
        TEXT, _("each annotator's grades, of every round, as trec_eval reads qrels_jg"), own_grades
    ),
    RELEASED: Download(
        "application/zip",
        _("pools with ticks and alternatives by number, in the layout of Fashion-AlterEval"),
        released_zip,
        permission=Permission.VIEW_WORKERS,
    ),
    "agreement.json": Download(
        JSON, _("coefficients with intervals and signatures"), agreement_json, AGREEMENT
    ),
    "validation.json": Download(
        JSON,
        _("every correlation, at every level and in every condition"),
        validation_json,
        VALIDATION,
    ),
    DATASET: Download(
        "application/zip",
        _("a dataset with its card, which the library datasets of Hugging Face loads"),
        dataset_zip,
        AGREEMENT,
    ),
}


# With no judgment there is nothing in them, and some cannot be written.
OF_JUDGMENTS = frozenset(
    {
        *("judgments", "submissions", "qrels", "qrels_jg", "provenance", "released_layout"),
        *("sampled", "agreement", "validation", "dataset"),
    }
)


def file_names(study: Study) -> list[str]:
    """The downloads that a study has: qrels of alternatives and of graded documents, and others
    once there is something in them; those asked for in one statement."""
    words = WrittenAnswer.objects.filter(submission__item__study=study)
    reasons = Submission.objects.of(study).exclude(justification="")
    rows = {
        "scores": ScoringRun.objects.of(study),
        "drawn": ItemSample.objects.of(study),
        "words": words,
        "reasons": reasons,
        "checks": CheckAnswer.objects.filter(submission__item__study=study),
        "practice": PracticeAnswer.objects.filter(hit__batch__study=study),
        "comments": DisputeComment.objects.of(study),
        "labels": LabelSet.objects.of(study),
    }
    stored = {f"has_{name}": Exists(of_name.order_by()) for name, of_name in rows.items()}
    has: dict[str, Any] = dict(Study.objects.filter(pk=study.pk).values(**stored).get())
    is_there = {
        **dict.fromkeys(("qrels", "qrels_jg", "provenance"), has_qrels(study)),
        "released_layout": study.kind == Study.Kind.ALTERNATIVES,
        "scores": has["has_scores"],
        "validation": has["has_scores"],
        "sampled": has["has_scores"] and has["has_drawn"],
        "written": has["has_words"] or has["has_reasons"],
        **{name: has[f"has_{name}"] for name in ("checks", "practice", "comments", "labels")},
    }
    return [name for name in DOWNLOADS if is_there.get(name.partition(".")[0], True)]
