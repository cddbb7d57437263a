"""Exports of surveys: a row per respondent, a column per question.

A respondent is an annotator. Each column is a question about one item, the whole survey, if no
pattern such as `{question}_{item}` tells which columns ask one question about several items.
Check boxes are one question, in whichever way the tool writes them.

Qualtrics: https://www.qualtrics.com/support/survey-platform/data-and-analysis-module/data/download-data/understanding-your-dataset/
SurveyMonkey: https://help.surveymonkey.com/en/surveymonkey/analyze/exporting-results/
Google Forms: https://support.google.com/docs/answer/139706
oTree: https://otree.readthedocs.io/en/latest/admin.html#data-export
Prolific: https://docs.prolific.com/api-reference/studies/export-demographic-data
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from annotation.exceptions import AnnotationError
from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row, item_key
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    Kind,
    compile_pattern,
    named_texts,
    number_of,
    require_fields,
    texts,
)
from error_codes import CodedText, require
from presentation.numbers import group_values

SURVEY, OTHER = "survey", "other"
# Qualtrics writes this between a question and one of several options.
CHOICE = " - Selected Choice"
MOST_LISTED = 8
MOST_BOXES = 50
SEVERAL_COLUMNS = CodedText(
    "Columns such as '{}' and '{}' are separate questions about one item. If they ask one question "
    "about several items, say --answers with a pattern, such as '{}'.",
    "columns_of_items",
)


@dataclass(frozen=True)
class SurveyLayout:
    """The columns that a tool's table has besides answers. Names of columns are patterns.

    `question` is how a column names its question, and possibly the item, if only such columns are
    questions. `part` is how columns name a question and its option or row, `example` the same as
    people write it. `between` are alternatives of what is between the ticked options in a cell.
    """

    has: tuple[frozenset[str], ...]
    annotator: tuple[str, ...]
    others: str
    question: str = r"(?P<question>.+)"
    item: str = ""
    part: str = r"(?!)"
    example: str = ""
    written: str = r"(?!)"
    between: tuple[str, ...] = ()
    status: str = ""
    statuses: Mapping[str, str] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()
    finished: str = ""
    seconds: str = ""
    missing: frozenset[str] = frozenset()


LAYOUTS = {
    "qualtrics": SurveyLayout(
        has=(frozenset({"ResponseId"}),),
        annotator=("ResponseId",),
        others=(
            "StartDate|EndDate|Status|IPAddress|Progress|Duration \\(in seconds\\)|Finished"
            "|RecordedDate|ResponseId|Recipient(LastName|FirstName|Email)|ExternalReference"
            "|Location(Latitude|Longitude)|DistributionChannel|UserLanguage|Q_\\D.*"
            "|PROLIFIC_PID|STUDY_ID|SESSION_ID|workerId|assignmentId|hitId"
            # Times of pages, and the order in which blocks and options were shown.
            "|.*_(First Click|Last Click|Page Submit|Click Count)|.*_DO(_.*)?"
        ),
        part=r"(?P<question>.+)_(?P<part>\d+)",
        example="{question}_{item}",
        written=r".*_TEXT",
        # An option's own comma has a space behind it.
        between=(r",(?! )",),
        status="Status",
        unused=frozenset({"Survey Preview", "Survey Test", "1", "2"}),
        finished="Finished",
        seconds="Duration (in seconds)",
        # Seen, but not answered.
        missing=frozenset({"-99"}),
    ),
    "surveymonkey": SurveyLayout(
        has=(
            frozenset({"Respondent ID", "Collector ID"}),
            frozenset({"respondent_id", "collector_id"}),
        ),
        annotator=("Respondent ID", "respondent_id"),
        others=(
            "(Respondent|Collector) ID|(Start|End) Date|(IP|Email) Address|(First|Last) Name"
            "|Custom Data.*|(respondent|collector)_id|date_(created|modified)"
            "|(ip|email)_address|(first|last)_name|custom_.*"
        ),
        part=r"(?P<question>.+): (?P<part>.+)",
        example="{question}: {item}",
        written=r".*: (Other \(please specify\)|Other)",
        between=(r", ?",),
    ),
    "google-forms": SurveyLayout(
        has=(frozenset({"Timestamp"}),),
        annotator=("Email Address", "Username", "Email address"),
        others="Timestamp|Email [Aa]ddress|Username|Score|Total score",
        part=r"(?P<question>.+) \[(?P<part>.+)\]",
        example="{question} [{item}]",
        # A CSV file of the form has semicolons, its spreadsheet has commas.
        between=(r";", r", "),
    ),
    "otree": SurveyLayout(
        has=(frozenset({"participant.code", "session.code"}),),
        annotator=("participant.code",),
        others=r".*player\.(id_in_group|role|payoff)",
        # `player.rating` in the table of an app, `app.1.player.rating` in the table of all apps.
        question=r"((?P<item>.+\.\d+)\.)?player\.(?P<question>[^.]+)",
        item="subsession.round_number",
    ),
    "prolific": SurveyLayout(
        has=(frozenset({"Submission id", "Participant id", "Status"}),),
        annotator=("Participant id",),
        others=(
            "(Submission|Participant) id|Status|Custom study tncs accepted at"
            "|(Started|Completed|Reviewed|Archived) at|Time taken|Completion code|Total approvals"
        ),
        between=(r", ",),
        status="Status",
        statuses={"APPROVED": "approved", "REJECTED": "rejected"},
        unused=frozenset({"RESERVED", "ACTIVE", "RETURNED", "TIMED-OUT", "SCREENED OUT"}),
        seconds="Time taken",
        missing=frozenset({"DATA_EXPIRED", "CONSENT_REVOKED", "Not Applicable"}),
    ),
}


@dataclass(frozen=True)
class _Question:
    name: str
    columns: tuple[str, ...]
    item: str = ""
    system: str = ""
    options: tuple[str, ...] = ()
    between: str = ""
    is_written: bool = False
    texts: tuple[str, ...] = ()


def read_survey(export: Export, tool: str, rows: list[Row] | None = None) -> list[Entry]:
    layout = LAYOUTS[tool]
    rows = list(export.records()) if rows is None else rows
    if not rows:
        return []
    fields = export.fields
    require_fields(rows[0], (*named_texts(fields), fields.annotator, *fields.values))
    questions = _questions(export, layout, rows)
    return list(export.read_each(lambda row: _entries(export, layout, questions, row), rows))


def _entries(
    export: Export, layout: SurveyLayout, questions: Sequence[_Question], row: Row
) -> Iterator[Entry]:
    status = row.optional(layout.status) if layout.status in row.fields else ""
    if status in layout.unused:
        export.leave_out_record(
            CodedText("it is a preview, a test, or was not completed", "not_respondent"), row
        )
        return
    about = texts(row, export.fields)
    names = export.fields.item or ((layout.item,) if layout.item in row.fields else ())
    key = item_key(row, names) if names else SURVEY
    first = Entry(
        row=row,
        item=key,
        annotator=_respondent(export, layout, row),
        status=layout.statuses.get(status, "submitted"),
        is_simulated=row.is_simulated or row.fields.get("participant._is_bot") == "1",
        **about,
    )
    entries: dict[str, Entry] = {}
    has_answers = any(row.text(name).strip() for each in questions for name in each.columns)
    is_finished = has_answers and row.fields.get(layout.finished) not in ("False", "FALSE", "0")
    for question in questions:
        if not export.is_unwanted(question.name, row):
            item = question.item or key
            entry = entries.setdefault(item, replace(first, item=item, answers=[], records=[]))
            _add_answer(export, layout, entry, question, row, is_finished=is_finished)
    if len(entries) == 1 and layout.seconds:
        entries[next(iter(entries))].seconds = number_of(row, layout.seconds)
    yield from entries.values()


def _respondent(export: Export, layout: SurveyLayout, row: Row) -> str:
    if export.fields.annotator:
        return row.required(export.fields.annotator, longest=254)
    column = next((name for name in layout.annotator if row.text(name).strip()), "")
    return row.required(column, longest=254) if column else f"respondent {export.count(SURVEY)}"


def _add_answer(
    export: Export,
    layout: SurveyLayout,
    entry: Entry,
    question: _Question,
    row: Row,
    *,
    is_finished: bool,
) -> None:
    candidate = ""
    if question.system:
        candidate = question.system
        drafts = {each.key: each for each in entry.candidates if each.system}
        drafts.setdefault(candidate, CandidateDraft(candidate, candidate))
        entry.candidates = tuple(drafts.values())
    column = question.columns[0]
    cells = [row.optional(name, longest=20_000) for name in question.columns]
    ticked = [option for option, cell in zip(question.options, cells, strict=False) if cell]
    if question.between and cells[0] and cells[0] not in layout.missing:
        ticked = [part for part in re.split(question.between, cells[0]) if part]
    if ticked or (is_finished and not cells[0] and (question.options or question.between)):
        entry.add(
            question.name, "categories", list(dict.fromkeys(ticked)), row.called(column), candidate
        )
    elif cells[0] in layout.missing or not cells[0]:
        export.report.note_missing(cells[0])
    elif not export.is_missing(cells[0], question.name):
        kind: Kind = "written" if question.is_written else "plain"
        entry.add(question.name, kind, cells[0], row.called(column), candidate)


def _questions(export: Export, layout: SurveyLayout, rows: Sequence[Row]) -> list[_Question]:
    columns = list(rows[0].fields)
    asked = [name for name in columns if _is_question(export, layout, name)]
    if others := [name for name in columns if name not in asked]:
        export.report.note(
            CodedText(
                f"These columns are not read as questions: {_listed(others)}.", "other_columns"
            )
        )
    source = rows[0].source
    table = _Table(
        layout=layout,
        asked=asked,
        values={name: Counter(row.text(name).strip() for row in rows) for name in asked},
        wording=source.wording if source else {},
        pattern=column_pattern(export.answers),
        written=export.written,
    )
    questions = table.questions()
    texts_of: defaultdict[str, list[str]] = defaultdict(list)
    for each in questions:
        texts_of[each.name] += each.texts
        if each.options or each.between:
            _note_boxes(export, each)
    export.wordings |= {name: _common_wording(texts_of[name], name) for name in texts_of}
    if similar := table.similar_columns(questions):
        export.report.note(
            CodedText(SEVERAL_COLUMNS.format(*similar[:2], layout.example), SEVERAL_COLUMNS.code)
        )
    return questions


@dataclass(frozen=True)
class _Table:
    layout: SurveyLayout
    asked: list[str]
    values: Mapping[str, Counter[str]]
    wording: Mapping[str, str]
    pattern: re.Pattern[str] | None
    written: frozenset[str]

    def questions(self) -> list[_Question]:
        groups = self._option_groups()
        grouped = {column: name for name, columns in groups.items() for column in columns}
        return [
            self._boxes(n, grouped[column], groups[grouped[column]])
            if column in grouped
            else self._question(n, column)
            for n, column in enumerate(self.asked, start=1)
            if column not in grouped or column == groups[grouped[column]][0]
        ]

    def similar_columns(self, questions: Iterable[_Question]) -> list[str]:
        parts: defaultdict[str, list[str]] = defaultdict(list)
        for each in questions if self.pattern is None else ():
            if not (each.options or each.is_written) and (part := self._part(each.columns[0])):
                parts[part["question"]].append(each.columns[0])
        return next((found for found in parts.values() if len(found) > 1), [])

    def _question(self, n: int, column: str) -> _Question:
        is_written = bool(re.fullmatch(self.layout.written, column))
        in_pattern = None if is_written or not self.pattern else self.pattern.fullmatch(column)
        match = in_pattern or re.fullmatch(self.layout.question, column)
        found = match.groupdict() if match else {}
        full = found.get("question") or column
        name = _short(full, n)
        is_written = is_written or name in self.written
        has_systems = self.pattern is not None and "system" in self.pattern.groupindex
        return _Question(
            name=name,
            columns=(column,),
            item=OTHER if has_systems and not in_pattern else found.get("item") or "",
            system=found.get("system") or "",
            between="" if is_written else _separator(self.layout, self.values[column]),
            is_written=is_written,
            texts=(self._text(column, full),),
        )

    def _boxes(self, n: int, question: str, columns: Sequence[str]) -> _Question:
        return _Question(
            name=_short(question, n),
            columns=tuple(columns),
            options=tuple(self._option(each) for each in columns),
            texts=tuple(self._text(each, question) for each in columns),
        )

    def _option_groups(self) -> dict[str, list[str]]:
        groups = group_values(
            (part["question"], column)
            for column in self.asked
            if (part := self._part(column)) and not re.fullmatch(self.layout.written, column)
        )
        return {
            question: columns
            for question, columns in groups.items()
            if len(columns) > 1 and all(map(self._is_box, columns))
        }

    def _is_box(self, column: str) -> bool:
        words = set(self.values[column]) - {""}
        part = self._part(column)
        return not words or words in ({self._option(column)}, {part["part"] if part else ""})

    def _part(self, column: str) -> re.Match[str] | None:
        return re.fullmatch(self.layout.part, column)

    def _option(self, column: str) -> str:
        _, dash, last = self.wording.get(column, "").rpartition(" - ")
        part = self._part(column)
        return last if dash else part["part"] if part else column

    def _text(self, column: str, question: str) -> str:
        text = self.wording.get(column, "")
        return question if column.startswith(text) or text.startswith(question) else text


def _short(name: str, n: int) -> str:
    return name if len(name) <= LONGEST_QUESTION else f"Q{n}"


def _is_question(export: Export, layout: SurveyLayout, column: str) -> bool:
    if export.fields.values:
        return column in export.fields.values
    fields = export.fields
    is_named = column in (*named_texts(fields), fields.annotator, "simulated")
    is_other = is_named or re.fullmatch(layout.others, column)
    return not is_other and bool(re.fullmatch(layout.question, column))


def column_pattern(answers: str) -> re.Pattern[str] | None:
    if not answers:
        return None
    used = [name for name in ("question", "item", "system") if f"{{{name}}}" in answers]
    require(
        not (used[:1] != ["question"] or len(used) < 2 or answers.count("{") != len(used)),
        AnnotationError(
            f"--answers '{answers}' must have {{question}}, and {{item}} or {{system}}, each once, "
            "as in '{question}_{item}'.",
            code="answers_pattern",
        ),
    )
    return compile_pattern(answers, used)


def _separator(layout: SurveyLayout, values: Counter[str]) -> str:
    """What is between ticked options in the cells of a column; "" if these are not check boxes.

    Options come in different combinations: half of the parts of cells are in several of these.
    """
    for between in layout.between:
        cells = [tuple(filter(None, re.split(between, value))) for value in values if value]
        counts = Counter(part.strip() for cell in cells for part in set(cell))
        if (
            any(len(cell) > 1 for cell in cells)
            and len(counts) <= MOST_BOXES
            and 2 * sum(n > 1 for n in counts.values()) >= len(counts)
        ):
            return between
    return ""


def _note_boxes(export: Export, question: _Question) -> None:
    where = "several options in a cell" if question.between else "a column for each option"
    export.report.note(
        CodedText(
            f"'{question.name}' is read as check boxes, with {where}. If nothing is ticked in a "
            "completed response, the answer has no option. If it is text, say --written "
            f"{question.name}.",
            "check_boxes",
        )
    )


def _common_wording(found: Sequence[str], name: str) -> str:
    words = [
        same[0]
        for same in zip(*(text.split(" ") for text in found), strict=False)
        if len(set(same)) == 1
    ]
    text = found[0] if len(set(found)) == 1 else " ".join(words)
    return text.rstrip(" -:[").removesuffix(CHOICE) or name


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
