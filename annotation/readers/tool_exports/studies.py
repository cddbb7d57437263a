"""Entries of an export as a study: its items, and one submission of an annotator for each.

An annotator who answered a question about an item more than once has repeats, which a policy
settles.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.utils.translation import ngettext

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
    WrittenDraft,
)
from annotation.readers.policies import Policies, Repeats, note_look_alikes
from annotation.readers.pooled_batch import is_pooled_batch, read_pooled_batch
from annotation.readers.tool_exports.argilla import read_argilla
from annotation.readers.tool_exports.entries import Answer, Entry, Export, FieldNames, place_of
from annotation.readers.tool_exports.flat_records import read_plain_table
from annotation.readers.tool_exports.label_studio import read_label_studio
from annotation.readers.tool_exports.mturk import read_mturk
from annotation.readers.tool_exports.potato import read_potato
from annotation.readers.tool_exports.questions import (
    Column,
    QuestionSettings,
    columns_of,
    labels_of,
    note_unmarked,
    unify_answers,
)
from annotation.readers.tool_exports.recognition import MTURK, POOLS, REGISTRY
from annotation.readers.tool_exports.spans import read_doccano
from error_codes import CodedText, require
from presentation.numbers import group_values

Pass = tuple[str, str, int]
READERS: dict[str, Callable[[Export], list[Entry]]] = {
    "label-studio": read_label_studio,
    "argilla": read_argilla,
    "doccano": read_doccano,
    "potato": read_potato,
    "mturk": read_mturk,
    "csv": read_plain_table,
    **{name: tool.read for name, tool in REGISTRY.items()},
}
TOOLS = (*READERS, POOLS)
REJECTED = CodedText(
    "the assignment was rejected, and the worker has another of the same item", "rejected"
)
SHARED = ("context", "reference", "condition")


@dataclass(frozen=True)
class ReadExport:
    export: Export
    items: list[ItemDraft]
    passes: dict[Pass, list[Entry]]
    columns: dict[str, Column]

    @property
    def report(self) -> ReadingReport:
        return self.export.report

    def refusal(self) -> ImportRefused | None:
        if self.columns and any(entry.answers for group in self.passes.values() for entry in group):
            return None
        problem = " ".join(["there is no answer that can be used.", *self.report.sentences()])
        return ImportRefused(self.export.path, problem, code="no_answers")

    def draft(self, *, keep_names: bool) -> StudyDraft:
        self.export.faults.require_none()
        if (refused := self.refusal()) is not None:
            raise refused
        return StudyDraft(
            kind="rating",
            items=self.items,
            questions=tuple(draft for column in self.columns.values() for draft in column.drafts),
            submissions=_submissions(self.passes, self.columns, keep_names),
            report=self.report,
        )


def read_tool_export(
    path: Path,
    tool: str,
    *,
    fields: FieldNames,
    settings: QuestionSettings,
    answers: str = "",
    policies: Policies | None = None,
    keep_names: bool = False,
) -> StudyDraft:
    """The study that a tool's export makes, or FileFaults with all that is wrong.

    Annotators get pseudonyms when it is written, unless their names are to be kept. `answers` is
    how a column of answers names its question and its system or item.
    """
    is_bare = fields == FieldNames() and not answers
    if tool == POOLS or (tool == MTURK and is_bare and is_pooled_batch(path)):
        require(
            is_bare and settings == QuestionSettings(),
            ImportRefused(
                path,
                "this batch shows targets and their pools, whose columns have names of their own, "
                "and asks one question: leave out the options that name fields and questions.",
                code="other_options",
            ),
        )
        return read_pools(path, keep_names=keep_names)
    export = Export(
        path,
        fields,
        policies=policies or Policies(),
        written=settings.written,
        without=settings.without,
    )
    return read_export(export, read_entries(export, tool, answers), settings).draft(
        keep_names=keep_names
    )


def read_pools(path: Path, *, keep_names: bool) -> StudyDraft:
    draft = read_pooled_batch(path)
    if not keep_names:
        return draft
    return replace(
        draft,
        submissions=tuple(
            replace(each, annotator=each.annotator or each.identity, identity="")
            for each in draft.submissions
        ),
    )


def read_entries(export: Export, tool: str, answers: str = "") -> list[Entry]:
    export.answers = answers
    return read_mturk(export, answers) if tool == "mturk" else READERS[tool](export)


def read_export(export: Export, entries: list[Entry], settings: QuestionSettings) -> ReadExport:
    entries = _without_rejected_repeats(export, entries)
    names = {answer.question for entry in entries for answer in entry.answers}
    wordings = {name: text for name, text in export.wordings.items() if name in names}
    settings = replace(settings, wordings=wordings | dict(settings.wordings))
    unify_answers(export, entries, settings)
    passes = _passes(entries)
    for what, at in (("items", 0), ("annotators", 1)):
        found = list(dict.fromkeys(str(each[at]) for each in passes))
        note_look_alikes(export.report, found, what=what, code=f"look_alike_{what}")
    settle_repeats(export, passes.values())
    columns = columns_of(export, entries, settings)
    items = _items(export, entries)
    if n := sum(any(entry.is_simulated for entry in group) for group in passes.values()):
        text = ngettext(
            "%(n)s submission is marked as simulated, and imported so.",
            "%(n)s submissions are marked as simulated, and imported so.",
            n,
        )
        export.report.note(CodedText(text % {"n": f"{n:,}"}, "simulated"))
    note_unmarked(export.report, entries, columns)
    export.count_unused_records(entries, columns)
    return ReadExport(export, items, passes, columns)


def _passes(entries: list[Entry]) -> dict[Pass, list[Entry]]:
    return group_values(
        ((entry.item, entry.annotator, entry.round), entry) for entry in entries if entry.annotator
    )


def _without_rejected_repeats(export: Export, entries: list[Entry]) -> list[Entry]:
    """A rejected assignment gives way to one of the same worker and item that was not."""
    dropped: list[Entry] = []
    for group in _passes(entries).values():
        rejected = [entry for entry in group if entry.status == "rejected"]
        dropped += rejected[1:] if len(rejected) == len(group) else rejected
    for entry in dropped:
        export.leave_out(REJECTED, entry.row, len(entry.answers), detail=entry.item)
    left_out = {id(entry) for entry in dropped}
    return [entry for entry in entries if id(entry) not in left_out]


def _items(export: Export, entries: list[Entry]) -> list[ItemDraft]:
    firsts: dict[str, Entry] = {}
    candidates: dict[str, dict[str, CandidateDraft]] = {}
    for entry in entries:
        first = firsts.setdefault(entry.item, entry)
        known = candidates.setdefault(entry.item, {})
        with export.faults.noting():
            for name in SHARED:
                if getattr(entry, name) != getattr(first, name):
                    raise entry.row.refuse(
                        f"the {name} differs from that of the same item ({place_of(first.row)}); "
                        "name the fields that tell items apart with --item.",
                        code="differs",
                    )
            for candidate in entry.candidates:
                entry.row.refuse_unless(
                    known.setdefault(candidate.key, candidate) == candidate,
                    f"'{candidate.key}' of item '{entry.item}' has another text than on an "
                    "earlier line; name the fields that tell items apart with --item, or the "
                    "system's with --system.",
                    code="differs",
                )
    return [
        ItemDraft(
            key=key,
            line=first.row.line,
            context=first.context,
            reference=first.reference,
            condition=first.condition,
            candidates=tuple(candidates[key].values()),
        )
        for key, first in firsts.items()
    ]


def _submissions(
    passes: dict[Pass, list[Entry]], columns: dict[str, Column], keep_names: bool
) -> list[SubmissionDraft]:
    submissions = []
    for (item, annotator, round), group in passes.items():
        group = [entry for entry in group if entry.answers]
        if not group:
            continue
        submissions.append(
            SubmissionDraft(
                item=item,
                round=round,
                line=group[0].row.line,
                path=group[0].row.path,
                raw=json.dumps(_raw(group), ensure_ascii=False),
                status=_status(group),
                accepted_at=min((e.accepted_at for e in group if e.accepted_at), default=None),
                submitted_at=max((e.submitted_at for e in group if e.submitted_at), default=None),
                seconds=_seconds(group),
                is_simulated=any(entry.is_simulated for entry in group),
                judgments=tuple(_judgments(group, columns)),
                written=tuple(_written_drafts(group, columns)),
                **{"annotator" if keep_names else "identity": annotator},
            )
        )
    return submissions


def _raw(group: list[Entry]) -> list[dict[str, Any]]:
    return [
        {"question": answer.question, "candidate": answer.candidate, "value": answer.value}
        for entry in group
        for answer in entry.answers
    ]


def _status(group: list[Entry]) -> str:
    statuses = {entry.status for entry in group}
    return statuses.pop() if len(statuses) == 1 else "submitted"


def _seconds(group: list[Entry]) -> float | None:
    times = [entry.seconds for entry in group]
    return None if None in times else float(sum(time for time in times if time is not None))


def _judgments(group: list[Entry], columns: dict[str, Column]) -> list[JudgmentDraft]:
    return [
        JudgmentDraft(answer.candidate, name, value, entry.row.line, answer.field)
        for entry in group
        for answer in entry.answers
        if (column := columns.get(answer.question)) and not column.is_written
        for name, value in column.values(answer)
    ]


def _written_drafts(group: list[Entry], columns: dict[str, Column]) -> list[WrittenDraft]:
    return [
        WrittenDraft(answer.question, "\n".join(labels_of(answer)), answer.candidate)
        for entry in group
        for answer in entry.answers
        if (column := columns.get(answer.question)) and column.is_written
    ]


Repeated = list[tuple[Entry, Answer]]
NUMBERS = ("number", "points", "placed")


def settle_repeats(export: Export, passes: Iterable[list[Entry]]) -> None:
    policy = export.policies.repeats or "refuse"
    export.report.policies["repeats"] = policy
    for group in passes:
        found = group_values(
            ((answer.candidate, answer.question), (entry, answer))
            for entry in _in_order(group)
            for answer in entry.answers
        )
        repeats = [repeated for repeated in found.values() if len(repeated) > 1]
        # One fault is enough where each question was answered again.
        for repeated in repeats[:1] if policy == "refuse" else repeats:
            with export.faults.noting():
                _settle(export, repeated, policy)


def _in_order(group: list[Entry]) -> list[Entry]:
    times = {id(entry): entry.submitted_at for entry in group if entry.submitted_at}
    if len(times) < len(group):
        return group
    return sorted(group, key=lambda entry: times[id(entry)])


def _settle(export: Export, repeated: Repeated, policy: Repeats) -> None:
    (first, answer), (entry, other) = repeated[:2]
    if policy == "refuse":
        place = place_of(first.row)
        where = "" if first is entry else f" (first in {place[:1].lower()}{place[1:]})"
        raise entry.refuse(
            other,
            f"annotator '{entry.annotator}' answered '{answer.question}' about item "
            f"'{entry.item}' more than once{where}. Choose an answer with --repeats, or name the "
            "fields that tell items apart with --item.",
            code="repeated_answer",
        )
    if policy == "mean":
        answer.value = _mean(repeated)
    kept = _kept(repeated, policy)
    for entry, answer in repeated:
        if answer is not kept:
            entry.answers = [one for one in entry.answers if one is not answer]
            text = "an annotator's further answers to one question about an item"
            export.leave_out(
                CodedText(f"{text} (--repeats {policy})", f"repeats_{policy}"),
                entry.row,
                detail=answer.question,
            )


def _kept(repeated: Repeated, policy: Repeats) -> Answer:
    if policy == "last":
        return repeated[-1][1]
    if policy == "majority":
        keys = [json.dumps(answer.value) for _, answer in repeated]
        return repeated[keys.index(Counter(keys).most_common(1)[0][0])][1]
    return repeated[0][1]


def _mean(repeated: Repeated) -> float:
    values = []
    for entry, answer in repeated:
        try:
            if answer.kind not in (*NUMBERS, "plain"):
                raise ValueError(answer.kind)
            values.append(float(answer.value))
        except ValueError:
            raise entry.refuse(
                answer,
                "--repeats mean needs numbers. For categories and words, choose first, last or "
                "majority.",
                code="mean_of_categories",
            ) from None
    return sum(values) / len(values)
