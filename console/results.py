"""A study's results, computed by the background worker and kept until what they rest on changes.

A result is a plain JSON value. Its content is what a page shows, the API answers and a
download holds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from django.db.models import Count, Max

from annotation.models import Judgment, Study, Submission
from console.agreement_parts import (
    AGREEMENT,
    DISAGREEMENT,
    DISPUTES,
    PAIRS,
    Content,
    agreement_parts,
)
from console.models import StoredResult
from console.report_files import REPORT_FILES
from console.validation_view import scatter_parts
from metrics.exceptions import NothingToValidate
from metrics.models import Score, ValidationRecord
from presentation.progress import Progress, silently
from validation.analysis import EVERY_CONDITION
from validation.documents.content import MEAN
from validation.study_report import candidate_cells, content_of
from validation.versions import make_validation

# A new form of the contents makes what is stored in the old one out of date.
FORM = 3
VALIDATION = "validation"
SCATTERS = "scatters"
REPORT = "report"


def fingerprint(study: Study) -> str:
    """What the results of a study depend on, as one string."""
    submissions = Submission.objects.of(study).order_by("pk")
    rejected = submissions.filter(status=Submission.Status.REJECTED)
    state = (
        FORM,
        study.pk,
        list(rejected.values_list("pk", flat=True)),
        list(submissions.flagged().values_list("pk", flat=True)),
        Judgment.objects.of(study).aggregate(n=Count("pk"), last=Max("pk")),
        Score.objects.filter(run__study=study).aggregate(n=Count("pk"), last=Max("pk")),
    )
    return sha256(repr(state).encode()).hexdigest()


def stored(study: Study, name: str, basis: str) -> Content | None:
    """The result as it was computed from what has that fingerprint; None where it was not yet."""
    kept = StoredResult.objects.filter(study=study, name=name, fingerprint=basis)
    return kept.values_list("content", flat=True).first()


def current(study: Study, name: str) -> Content:
    """The result, computed now where none is stored: for tasks and commands, not for pages."""
    found = stored(study, name, fingerprint(study))
    return compute(study, MADE_WITH.get(name, name))[name] if found is None else found


def compute(study: Study, name: str, progress: Progress = silently) -> dict[str, Content]:
    """Compute the result of that name and keep it, with what comes of the same computing."""
    # Taken first: what changes meanwhile makes the result out of date, and never wrong.
    basis = fingerprint(study)
    found = {
        part: content | {"study": study.slug, "input": basis}
        for part, content in MAKERS[name](study, progress).items()
    }
    made: dict[str, Content] = json.loads(json.dumps(found, allow_nan=False))
    for part, content in made.items():
        StoredResult.objects.update_or_create(
            study=study, name=part, defaults={"fingerprint": basis, "content": content}
        )
    return made


def _validation(study: Study, progress: Progress) -> dict[str, Content]:
    """Correlations of every metric with every question, at every level."""
    found: dict[str, Content] = {}
    for part in progress((VALIDATION, SCATTERS), 2):
        try:
            record = make_validation(study=study).record
        except NothingToValidate as nothing:
            return {VALIDATION: {"rows": [], "reason": str(nothing)}, SCATTERS: {"scatters": []}}
        if part == VALIDATION:
            found[part] = _correlations(record)
        else:
            found[part] = scatter_parts(content_of(record), candidate_cells(record))
    return found


def _correlations(record: ValidationRecord) -> Content:
    """The table of a report, and by which rules it was made; its number leads to the rest."""
    settings = record.rules
    told = ("aggregation", "round", "n_resamples", "seed")
    sets = [(one["metric"], one["signature"]) for one in record.content["inputs"]["score_sets"]]
    shown = [row for row in record.content["correlations"] if row["scope"] != MEAN]
    rows = sorted(shown, key=lambda row: sets.index((row["metric"], row["signature"])))
    return {"report": record.version, **{name: settings[name] for name in told}, "rows": rows}


def _report(study: Study, progress: Progress) -> dict[str, Content]:
    """The report as files to take away, each a text or, of an archive, in base64."""
    made: dict[str, str] = {}
    try:
        for name in progress(REPORT_FILES, len(REPORT_FILES)):
            made[name] = REPORT_FILES[name](study)
    except NothingToValidate as nothing:
        return {REPORT: {"files": {}, "reason": str(nothing)}}
    return {REPORT: {"files": made}}


MAKERS: dict[str, Callable[[Study, Progress], dict[str, Content]]] = {
    AGREEMENT: agreement_parts,
    VALIDATION: _validation,
    REPORT: _report,
}
# Parts too large for every page, which come with the computing of another result.
MADE_WITH = dict.fromkeys((PAIRS, DISAGREEMENT, DISPUTES), AGREEMENT) | {SCATTERS: VALIDATION}


@dataclass(frozen=True)
class TableRow:
    """One metric against one question: a correlation's record per coefficient."""

    question: str
    metric: str
    signature: str
    shares_its_metric: bool
    cells: tuple[Content, ...]

    @property
    def first(self) -> Content:
        return self.cells[0]


def correlation_table(rows: list[Content], level: str, condition: str) -> list[TableRow]:
    """The rows of one level and condition (none named: all), one for a question and metric."""
    found: dict[tuple[str, str, str], list[Content]] = {}
    for row in rows:
        if (row["level"], row["by"]) == (level, condition):
            found.setdefault((row["question"], row["metric"], row["signature"]), []).append(row)
    n_runs = Counter(metric for metric, _ in {names[1:] for names in found})
    return [
        TableRow(*names, shares_its_metric=n_runs[names[1]] > 1, cells=tuple(cells))
        for names, cells in found.items()
    ]


def conditions_of(rows: list[Content]) -> list[str]:
    """The conditions of a result, without the one that stands for all of them."""
    return [name for name in dict.fromkeys(row["by"] for row in rows) if name != EVERY_CONDITION]
