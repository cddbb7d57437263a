"""What a study's page offers to take away."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.agreement_records import agreement_records
from annotation.exports import checks_csv, judgments_csv, written_csv
from annotation.models import CheckAnswer, Study, Submission, WrittenAnswer
from annotation.qrels import stream_qrels
from console.results import AGREEMENT, VALIDATION, require_agreement, require_validation
from console.validation_view import correlations_of
from hits.exports import submissions_csv, submissions_jsonl
from metrics.exports import scores_csv
from metrics.models import ScoringRun
from validation.analysis.records import plain
from validation.rows import StoredResults


@dataclass(frozen=True)
class Download:
    """A file: its type, what it holds, its text bit by bit, the result it waits for, if any, and
    what one must be allowed beside exporting."""

    content_type: str
    about: str | Promise
    write: Callable[[Study], Iterator[str]]
    result: str = ""
    permission: Permission = Permission.EXPORT


def agreement_json(study: Study) -> Iterator[str]:
    """Coefficients with what they rest on, and every pair of annotators."""
    version = require_agreement(study)
    yield json.dumps({"study": study.slug, **agreement_records(version)}, indent=1)


def validation_json(study: Study) -> Iterator[str]:
    """Every correlation, at every level and in every condition; none while scores are missing."""
    outcome = require_validation(study)
    source = {"study": study.slug, "input": outcome.fingerprint}
    if (version := outcome.version) is None:
        empty = {"report": None, "reason": outcome.reason} | source
        yield json.dumps(empty | {"rows": []}, indent=1)
        return
    results = StoredResults(version, with_variants=True)
    names = ("aggregation", "round", "n_resamples", "seed")
    rules = {name: version.rules[name] for name in names}
    rows = [plain(row) for row in correlations_of(results)]
    yield json.dumps({"report": version.number} | source | rules | {"rows": rows}, indent=1)


CSV, JSON, TEXT = "text/csv; charset=utf-8", "application/json", "text/plain; charset=utf-8"
JSON_LINES = "application/jsonl; charset=utf-8"
SUBMISSIONS = _("every submission: who, when, how long, reason, comment, status and flag")
DOWNLOADS = {
    "judgments.csv": Download(
        CSV,
        _("every judgment but rejected ones, one long table"),
        judgments_csv,
    ),
    "submissions.csv": Download(
        CSV, SUBMISSIONS, submissions_csv, permission=Permission.VIEW_WORKERS
    ),
    "submissions.jsonl": Download(
        JSON_LINES, SUBMISSIONS, submissions_jsonl, permission=Permission.VIEW_WORKERS
    ),
    "written.csv": Download(
        CSV,
        _("every answer in words, and every reason"),
        written_csv,
        permission=Permission.VIEW_WORKERS,
    ),
    "checks.csv": Download(
        CSV, _("every answer to a quality check"), checks_csv, permission=Permission.VIEW_WORKERS
    ),
    "scores.csv": Download(CSV, _("every score with its signature"), scores_csv),
    "agreement.json": Download(
        JSON, _("coefficients with intervals and signatures"), agreement_json, AGREEMENT
    ),
    "validation.json": Download(
        JSON,
        _("every correlation, at every level and in every condition"),
        validation_json,
        VALIDATION,
    ),
    "qrels.txt": Download(TEXT, _("TREC qrels"), stream_qrels),
}


def file_names(study: Study) -> list[str]:
    """The downloads that a study has: qrels of alternatives, and the rest once it is scored."""
    absent = {"qrels.txt"} if study.kind == Study.Kind.RATING else set()
    if not ScoringRun.objects.of(study).exists():
        absent |= {"scores.csv", "validation.json"}
    words = WrittenAnswer.objects.filter(submission__item__study=study)
    reasons = Submission.objects.of(study).exclude(justification="")
    if not words.exists() and not reasons.exists():
        absent |= {"written.csv"}
    if not CheckAnswer.objects.filter(submission__item__study=study).exists():
        absent |= {"checks.csv"}
    return [name for name in DOWNLOADS if name not in absent]
