from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _, ngettext

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.models import Study, Upload
from annotation.readers.drafts import Faults, ItemDraft, ReadingReport, StudyDraft
from annotation.readers.formats import FileFormat
from annotation.readers.policies import Categories, Missing, Policies, Repeats
from annotation.readers.tool_exports.entries import Export
from annotation.readers.tool_exports.questions import QuestionSettings
from annotation.readers.tool_exports.recognition import (
    MTURK,
    POOLS,
    REGISTRY,
    SEVERAL,
    TABLE,
    LabelUse,
    OpenExport,
    field_names,
    guess_uses,
    opened_export,
    pattern_example,
    profile_fields,
    uses_of,
)
from annotation.readers.tool_exports.studies import (
    ReadExport,
    read_entries,
    read_export,
    read_pools,
)
from annotation.readers.tool_exports.surveys import column_pattern
from annotation.result_kinds.agreement import AgreementKind
from annotation.uploads import (
    find_stored_mapping,
    keep_mapping,
    note_faults,
    note_refusal,
    require_no_faults,
    stored_file,
    write_upload,
)
from error_codes import CodedText
from work.execution import RunningJob

WORDS, LEFT_OUT = "words", "left_out"
ITEMS_SHOWN, ANNOTATORS_SHOWN, SYSTEMS_SHOWN, CATEGORIES_SHOWN = 10, 12, 20, 12
SHOWN_CHARACTERS = 1500
# All of an export is in memory while it is read.
MOST_MEGABYTES = 64


@dataclass(frozen=True)
class QuestionOverride:
    level: str = ""
    low: str = ""
    high: str = ""
    wording: str = ""


@dataclass(frozen=True)
class LabelSettings:
    tool: str = ""
    uses: Mapping[str, str] = field(default_factory=dict)
    answers: str = ""
    questions: Mapping[str, QuestionOverride] = field(default_factory=dict)
    keeps_names: bool = False
    repeats: Repeats = "refuse"
    missing: Missing = "words"
    categories: Categories = "as-written"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LabelSettings:
        questions = {
            name: QuestionOverride(**each) for name, each in values.get("questions", {}).items()
        }
        return cls(**{**values, "questions": questions})

    @property
    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def question_settings(self) -> QuestionSettings:
        overrides = self.questions
        return QuestionSettings(
            levels={
                n: each.level
                for n, each in overrides.items()
                if each.level not in ("", WORDS, LEFT_OUT)
            },
            scales={
                name: (float(each.low), float(each.high))
                for name, each in overrides.items()
                if each.low and each.high
            },
            wordings={name: each.wording for name, each in overrides.items() if each.wording},
            written=frozenset(name for name, each in overrides.items() if each.level == WORDS),
            without=frozenset(name for name, each in overrides.items() if each.level == LEFT_OUT),
        )

    def problems(self) -> list[CodedText]:
        chosen = Counter(self.uses.values())
        problems = [
            CodedText(_("Only one field can be “{use}”.").format(use=use.label), "repeated_use")
            for use in uses_of(self.tool)
            if use not in SEVERAL and chosen[use] > 1
        ]
        if self.tool == TABLE:
            problems += [
                CodedText(
                    _("Choose the column that is “{use}”.").format(use=use.label),
                    f"no_{use}",
                )
                for use in (LabelUse.ITEM, LabelUse.ANNOTATOR, LabelUse.VALUE)
                if not chosen[use]
            ]
        if self.tool in REGISTRY:
            problems += _pattern_problems(self.answers)
        has_both = all(self.answers.count(part) == 1 for part in ("{question}", "{system}"))
        rules: tuple[tuple[object, str, str], ...] = (
            (
                self.tool == TABLE and chosen[LabelUse.QUESTION] and chosen[LabelUse.VALUE] > 1,
                _(
                    "Where a column names the question, one column holds all answers; "
                    "choose one “Answer”, or no “Question”."
                ),
                "several_answers",
            ),
            (
                self.tool == MTURK and self.answers and not has_both,
                _("The pattern of answers needs {question} and {system}, once each."),
                "answers_pattern",
            ),
        )
        return problems + [CodedText(text, code) for is_broken, text, code in rules if is_broken]


def _pattern_problems(answers: str) -> list[CodedText]:
    try:
        column_pattern(answers)
    except AnnotationError as error:
        return [CodedText(str(error), error.code)]
    return []


@contextmanager
def _opened(
    upload: Upload, tool: str, faults: Faults, report: ReadingReport | None = None
) -> Iterator[OpenExport]:
    with stored_file(upload) as path:
        most = 5 * settings.UPLOAD_MAX_MEGABYTES * 1024**2
        with opened_export(
            path, tool, FileFormat.of(upload.form), faults.add, most_bytes=most, report=report
        ) as export:
            yield export


def read_labels(running: RunningJob) -> str:
    upload = Upload.objects.get(pk=running.arguments["upload"])
    chosen, faults, report = LabelSettings.of(upload.mapping), Faults(), ReadingReport()
    if upload.n_bytes > MOST_MEGABYTES * 1024**2:
        return _unread(
            upload,
            ImportRefused(
                Path(upload.file_name),
                _(
                    "labels of more than {n} MiB. Export them in parts, or ask the site's operator "
                    "for the command import_judgments."
                ).format(n=MOST_MEGABYTES),
                code="too_large",
            ),
        )
    try:
        with _opened(upload, chosen.tool, faults, report) as export:
            first = profile_fields(export)
            upload.form, upload.n_rows = export.form.plain, len(export.rows or ())
            upload.columns = [{"name": name, "first": text} for name, text in first.items()]
            if "uses" not in upload.mapping:
                chosen = _first_settings(upload, export.tool, first)
            upload.mapping = chosen.plain
            read = None if chosen.problems() else _read(export, chosen, faults)
            upload.summary = {} if read is None else _summary(read)
            if isinstance(read, StudyDraft):
                report = read.report
    except ImportRefused as refused:
        return _unread(upload, refused)
    note_faults(upload, faults, report)
    n = upload.n_rows or 0
    return ngettext("%(n)s record read.", "%(n)s records read.", n) % {"n": f"{n:,}"}


def _unread(upload: Upload, refused: ImportRefused) -> str:
    upload.n_rows = None
    note_refusal(upload, refused, ReadingReport())
    return ""


def _first_settings(upload: Upload, tool: str, first: Mapping[str, str]) -> LabelSettings:
    stored = find_stored_mapping(upload, tool)
    guessed = {"tool": tool, "uses": guess_uses(first, tool)}
    return LabelSettings.of(guessed if stored is None else stored)


def _read(
    export: OpenExport, chosen: LabelSettings, faults: Faults
) -> ReadExport | StudyDraft | None:
    try:
        if chosen.tool == POOLS:
            return read_pools(export.file, keep_names=chosen.keeps_names)
        return _read_entries(export, chosen, faults)
    except ImportRefused as refused:
        faults.add(refused)
        return None


def _read_entries(export: OpenExport, chosen: LabelSettings, faults: Faults) -> ReadExport:
    asked = chosen.question_settings()
    source = Export(
        export.path,
        field_names(chosen.uses, chosen.tool),
        rows=export.rows,
        report=export.report,
        policies=Policies(
            missing=chosen.missing, repeats=chosen.repeats, categories=chosen.categories
        ),
        written=asked.written,
        without=asked.without,
    )
    answers = chosen.answers if chosen.tool == MTURK or pattern_example(chosen.tool) else ""
    entries = read_entries(source, chosen.tool, answers)
    names = {answer.question for entry in entries for answer in entry.answers}
    read = read_export(source, entries, asked.among(names | source.unwanted.keys()))
    for fault in sorted(source.faults.faults, key=lambda fault: fault.line or 0):
        faults.add(fault)
    if not faults.n and (refused := read.refusal()) is not None:
        faults.add(refused)
    return read


def _summary(read: ReadExport | StudyDraft) -> dict[str, Any]:
    return summary_of(read) if isinstance(read, ReadExport) else summary_of_pools(read)


def summary_of_pools(draft: StudyDraft) -> dict[str, Any]:
    [question] = draft.questions
    n_answers = sum(len(each.judgments) for each in draft.submissions)
    categories = {"categories": list(question.categories)}
    row = {"name": question.name, "n_answers": n_answers, "is_read": True, "is_split": False}
    row |= {"level": question.level, "n_categories": len(question.categories)}
    return _facts(
        list(draft.items),
        [(each.identity or each.annotator, each.round) for each in draft.submissions],
        n_answers=n_answers,
        questions=[row | categories],
    )


def summary_of(read: ReadExport) -> dict[str, Any]:
    answered = [group for group in read.passes.values() if any(e.answers for e in group)]
    return _facts(
        read.items,
        [(group[0].annotator, group[0].round) for group in answered],
        n_answers=sum(len(entry.answers) for group in answered for entry in group),
        questions=_questions(read),
    )


def _facts(
    items: Sequence[ItemDraft],
    submissions: Sequence[tuple[str, int]],
    *,
    n_answers: int,
    questions: list[dict[str, Any]],
) -> dict[str, Any]:
    people = Counter(annotator for annotator, _round in submissions)
    systems = {candidate.system for item in items for candidate in item.candidates} - {""}
    return {
        "n_items": len(items),
        "n_candidates": sum(len(item.candidates) for item in items),
        "n_submissions": len(submissions),
        "n_answers": n_answers,
        "n_rounds": len({round for _annotator, round in submissions}),
        "n_annotators": len(people),
        "annotators": [n for _name, n in people.most_common(ANNOTATORS_SHOWN)],
        "n_systems": len(systems),
        "systems": sorted(systems)[:SYSTEMS_SHOWN],
        "questions": questions,
        "items": [_item(item) for item in items[:ITEMS_SHOWN]],
    }


def _questions(read: ReadExport) -> list[dict[str, Any]]:
    counts = Counter(
        answer.question
        for group in read.passes.values()
        for entry in group
        for answer in entry.answers
    )
    rows = []
    unread = (name for name in counts if name not in read.columns)
    for name in [*(name for name in read.columns if name in counts), *unread]:
        column, n = read.columns.get(name), counts[name]
        row: dict[str, Any] = {"name": name, "n_answers": n, "is_read": column is not None}
        if column is not None and column.is_written:
            row["level"] = WORDS
        elif column is not None:
            draft = column.drafts[0]
            parts = [each.name for each in column.drafts] if draft.name != name else []
            categories = parts or list(draft.categories)
            row |= {"level": draft.level, "is_split": bool(parts)}
            row |= {"low": draft.scale_min, "high": draft.scale_max}
            row |= {"categories": categories[:CATEGORIES_SHOWN], "n_categories": len(categories)}
        rows.append(row)
    return rows + [
        {"name": name, "n_answers": n, "is_read": False, "level": LEFT_OUT}
        for name, n in read.export.unwanted.items()
    ]


def _item(item: Any) -> dict[str, Any]:
    return {
        "key": item.key,
        "condition": item.condition,
        "context": item.context[:SHOWN_CHARACTERS],
        "candidates": [
            {"key": each.key, "system": each.system, "text": each.text[:SHOWN_CHARACTERS]}
            for each in item.candidates[:ITEMS_SHOWN]
        ],
    }


def import_labels(running: RunningJob) -> str:
    upload = Upload.objects.select_related("study", "team", "uploaded_by").get(
        pk=running.arguments["upload"]
    )
    chosen, faults = LabelSettings.of(upload.mapping), Faults()
    try:
        with _opened(upload, chosen.tool, faults) as export:
            read = _read(export, chosen, faults)
            require_no_faults(upload, faults)
            assert read is not None
            if isinstance(read, ReadExport):
                read = read.draft(keep_names=chosen.keeps_names)
            with transaction.atomic():
                imported = write_upload(upload, read, running)
                keep_mapping(upload, chosen.tool)
                message = str(imported)
                running.complete(message)
    except ImportRefused as refused:
        faults.add(refused)
        note_faults(upload, faults)
        raise
    AgreementKind().request(Study.objects.get(pk=imported.study.pk), running.job.requested_by)
    return message
