from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from django.utils.translation import ngettext

from annotation.exceptions import AnnotationError
from annotation.readers.drafts import QuestionDraft, ReadingReport
from annotation.readers.judgments import MOST_CATEGORIES
from annotation.readers.policies import merged_categories, merged_note, note_look_alikes
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Answer,
    Entry,
    Export,
    Faults,
    number_of_text,
)
from error_codes import CodedText
from presentation.numbers import group_values

LEVELS = {"number": "interval", "points": "ordinal", "placed": "ordinal"}


@dataclass(frozen=True)
class QuestionSettings:
    levels: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    wordings: Mapping[str, str] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    def level(self, name: str) -> str:
        return self.levels.get(name) or self.levels.get("", "")

    def among(self, names: Collection[str]) -> "QuestionSettings":
        kept = {"", *names}
        return QuestionSettings(
            levels={name: each for name, each in self.levels.items() if name in kept},
            scales={name: each for name, each in self.scales.items() if name in kept},
            wordings={name: each for name, each in self.wordings.items() if name in kept},
            written=self.written & kept,
            without=self.without & kept,
        )

    def require_known(self, names: Iterable[str]) -> None:
        there = sorted(names)
        for name in (*self.levels, *self.scales, *self.wordings, *self.written, *self.without):
            if name and name not in there:
                raise AnnotationError(
                    f"There are no answers to a question '{name}'. Questions: {', '.join(there)}.",
                    code="unknown_question",
                )


@dataclass(frozen=True)
class Column:
    drafts: tuple[QuestionDraft, ...]
    is_written: bool = False
    codes: Mapping[str, float] = field(default_factory=dict)

    def values(self, answer: Answer) -> list[tuple[str, float]]:
        if len(self.drafts) > 1 or self.drafts[0].name != answer.question:
            chosen = [f"{answer.question}:{label}" for label in answer.value]
            return [(draft.name, float(draft.name in chosen)) for draft in self.drafts]
        name = answer.question
        if self.codes:
            return [(name, self.codes[label]) for label in labels_of(answer)]
        return [(name, float(answer.value))]


def labels_of(answer: Answer) -> list[str]:
    if isinstance(answer.value, list):
        return answer.value
    return [f"{answer.value:g}" if isinstance(answer.value, float) else str(answer.value)]


Answers = list[tuple[Entry, Answer]]


def columns_of(
    export: Export, entries: Iterable[Entry], settings: QuestionSettings
) -> dict[str, Column]:
    """A column for each question, in the order of the file's columns; of those that share one, in
    the order in which the file first answers them. A question without any category has none."""
    answered = _by_question(entries)
    settings.require_known([*answered, *export.unwanted])
    faults = export.faults
    columns: dict[str, Column] = {}
    for name, answers in sorted(answered.items(), key=lambda pair: _position(*pair[1][0])):
        with faults.noting():
            if (column := _column(name, answers, settings, faults)) is not None:
                columns[name] = column
    return columns


def _by_question(entries: Iterable[Entry]) -> dict[str, Answers]:
    return group_values(
        (answer.question, (entry, answer)) for entry in entries for answer in entry.answers
    )


def unify_answers(export: Export, entries: Iterable[Entry], settings: QuestionSettings) -> None:
    """Give the answers to each question one kind and one spelling of numbers, and note or merge
    its categories that look alike."""
    for name, answers in _by_question(entries).items():
        if name in settings.written:
            continue
        level = settings.level(name)
        _give_one_kind(answers, level)
        kinds = {answer.kind for _, answer in answers}
        if kinds == {"plain"} and level != "nominal":
            _read_decimal_commas(answers, level)
            if level or _all_numbers(answers):
                continue
            _note_words(export.report, name, answers)
        if kinds in ({"plain"}, {"categories"}):
            _settle_categories(export, answers)


def _give_one_kind(answers: Answers, level: str) -> None:
    """Read texts next to lists of categories as such lists, and labels that are all numbers as
    numbers if their level is."""
    kinds = {answer.kind for _, answer in answers}
    if kinds == {"plain", "categories"}:
        for _, answer in answers:
            if answer.kind == "plain":
                answer.kind, answer.value = "categories", [answer.value]
    elif kinds == {"categories"} and level not in ("", "nominal"):
        values = [answer.value for _, answer in answers]
        if all(len(labels) == 1 and number_of_text(labels[0]) is not None for labels in values):
            for _, answer in answers:
                answer.kind, answer.value = "plain", answer.value[0]


def _read_decimal_commas(answers: Answers, level: str) -> None:
    """Write numbers with a point if the table may have decimal commas. Unless the level says that
    there are numbers, all answers must be some."""
    commas = [
        (entry.row.source, answer)
        for entry, answer in answers
        if entry.row.source is not None and entry.row.source.is_decimal_comma(str(answer.value))
    ]
    n_numbers = sum(number_of_text(answer.value) is not None for _, answer in answers)
    if level or n_numbers + len(commas) == len(answers):
        for source, answer in commas:
            answer.value = source.with_decimal_point(str(answer.value))


def _note_words(report: ReadingReport, name: str, answers: Answers) -> None:
    words = [(entry, each) for entry, each in answers if number_of_text(each.value) is None]
    if 2 * len(words) >= len(answers):
        return
    text = ngettext(
        "%(n)s of %(all)s answers to '%(name)s' is not a number: '%(word)s' (%(place)s). So the "
        "answers are categories. If they are numbers, correct the file.",
        "%(n)s of %(all)s answers to '%(name)s' are not numbers, such as '%(word)s' (%(place)s). "
        "So the answers are categories. If they are numbers, correct the file.",
        len(words),
    )
    [(entry, answer), *_more] = words
    values = {"n": f"{len(words):,}", "all": f"{len(answers):,}", "name": name}
    values |= {"word": str(answer.value)[:40], "place": entry.row.place}
    report.note(CodedText(text % values, "words_among_numbers"))


def _settle_categories(export: Export, answers: Answers) -> None:
    counts = Counter(label for _, answer in answers for label in labels_of(answer))
    export.report.policies["categories"] = export.policies.categories
    if export.policies.categories == "as-written":
        note_look_alikes(
            export.report, list(counts), what="categories", code="look_alike_categories"
        )
    elif merged := merged_categories(list(counts), list(counts.values())):
        for _, answer in answers:
            labels = list(dict.fromkeys(merged.get(each, each) for each in labels_of(answer)))
            answer.value = labels if isinstance(answer.value, list) else labels[0]
        export.report.note(merged_note(merged, counts))


def note_unmarked(
    report: ReadingReport, entries: Iterable[Entry], columns: Mapping[str, Column]
) -> None:
    for name, n in Counter(
        answer.question
        for entry in entries
        for answer in entry.answers
        if answer.kind == "categories" and not answer.value
    ).items():
        if (column := columns.get(name)) is None:
            report.leave_out_part(
                CodedText(
                    "no answer to the question has a category (if its answers are text: --written)",
                    "no_category",
                ),
                name,
                n,
            )
        elif not column.is_written:
            text = ngettext(
                "%(n)s answer to '%(name)s' has no category: it counts as no to each.",
                "%(n)s answers to '%(name)s' have no category: they count as no to each.",
                n,
            )
            text = text % {"n": f"{n:,}", "name": name}
            report.note(CodedText(text, "answers_without_category"))


def _position(entry: Entry, answer: Answer) -> int:
    """Of the answer's column in its row; of an option's, as `Answer.top1.on`, if it has several."""
    names = enumerate(entry.row.fields)
    field = answer.field.removeprefix(f"{entry.row.inside}.")
    return next((n for n, name in names if name == field or name.startswith(f"{field}.")), 0)


def _column(
    name: str, answers: Answers, settings: QuestionSettings, faults: Faults
) -> Column | None:
    if name in settings.written or answers[0][1].kind == "written":
        return Column(drafts=(), is_written=True)
    kind = answers[0][1].kind
    for entry, answer in answers:
        if answer.kind != kind:
            raise entry.refuse(
                answer,
                f"question '{name}' is answered by {answer.kind} here, by {kind} before.",
                code="other_kind",
            )
    level = settings.level(name)
    if kind == "categories":
        if level not in ("", "nominal"):
            raise answers[0][0].refuse(
                answers[0][1],
                f"question '{name}' is answered by categories, which are nominal.",
                code="nominal",
            )
        return _categories(name, answers, settings)
    if level == "nominal" or (kind == "plain" and not level and not _all_numbers(answers)):
        return _labels(name, answers, settings)
    return _numbers(name, answers, settings, faults)


def _all_numbers(answers: Answers) -> bool:
    return all(number_of_text(answer.value) is not None for _, answer in answers)


def _numbers(name: str, answers: Answers, settings: QuestionSettings, faults: Faults) -> Column:
    level = settings.level(name) or LEVELS.get(answers[0][1].kind, "interval")
    scale = settings.scales.get(name) or settings.scales.get("")
    if answers[0][1].kind == "placed":
        scale = (0.0, 1.0)
    values: list[float] = []
    for entry, answer in answers:
        with faults.noting():
            values.append(_value(entry, answer, level, scale))
    low, high = scale or (min(values, default=0.0), max(values, default=1.0))
    draft = QuestionDraft(
        name=name,
        wording=settings.wordings.get(name, name),
        level=level,
        scale_min=low,
        scale_max=high if high > low else low + 1,
        kind=_comparison(answers),
    )
    return Column(drafts=(draft,))


def _value(entry: Entry, answer: Answer, level: str, scale: tuple[float, float] | None) -> float:
    number = number_of_text(answer.value)
    if number is None:
        raise entry.refuse(
            answer,
            f"'{str(answer.value)[:40]}' is not a number. If '{answer.question}' has categories, "
            f"say --level {answer.question}=nominal; if words, --written {answer.question}.",
            code="not_number",
        )
    if level == "ratio" and number < 0:
        raise entry.refuse(
            answer, f"{number:g} is below zero, where a ratio scale begins.", code="below_zero"
        )
    if scale and not scale[0] <= number <= scale[1]:
        raise entry.refuse(
            answer,
            f"{number:g} is outside the scale, {scale[0]:g} to {scale[1]:g}.",
            code="off_scale",
        )
    return number


def _comparison(answers: Answers) -> str:
    if answers[0][1].kind != "placed":
        return "line"
    entry, answer = answers[0]
    n = sum(each.question == answer.question for each in entry.answers)
    return "preference" if n == 2 else "ranking"


def _labels(name: str, answers: Answers, settings: QuestionSettings) -> Column:
    labels = sorted({label for _, answer in answers for label in labels_of(answer)})
    if (n := len(labels)) > MOST_CATEGORIES:
        entry, answer = answers[0]
        raise entry.refuse(
            answer,
            f"question '{name}' has {n:,} different answers, where {MOST_CATEGORIES} categories "
            f"fit. If they are words, say --written {name}.",
            code="too_many_categories",
        )
    draft = QuestionDraft(
        name=name,
        wording=settings.wordings.get(name, name),
        level="nominal",
        scale_max=float(max(len(labels) - 1, 1)),
        categories=tuple(labels),
    )
    return Column(drafts=(draft,), codes={label: float(code) for code, label in enumerate(labels)})


def _categories(name: str, answers: Answers, settings: QuestionSettings) -> Column | None:
    """One question if everyone chose one; else one of yes and no for each category, so that an
    answer without a category counts. None without any category."""
    if all(len(answer.value) == 1 for _, answer in answers):
        return _labels(name, answers, settings)
    labels = sorted({label for _, answer in answers for label in answer.value})
    if not labels:
        return None
    return Column(drafts=tuple(_parts(name, settings.wordings.get(name, name), labels, answers)))


def _parts(name: str, wording: str, labels: list[str], answers: Answers) -> Iterator[QuestionDraft]:
    for label in labels:
        part = f"{name}:{label}"
        if len(part) > LONGEST_QUESTION:
            entry, answer = next((e, a) for e, a in answers if label in a.value)
            raise entry.refuse(
                answer,
                f"'{part[:40]}...' would name a question, by {len(part)} characters, where "
                f"{LONGEST_QUESTION} fit. Shorten the category.",
                code="too_long",
            )
        yield QuestionDraft(
            name=part,
            wording=f"{wording}: {label}",
            level="nominal",
            scale_max=1.0,
            categories=("no", "yes"),
        )
