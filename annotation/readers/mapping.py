from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import CodedText
from presentation.numbers import group_values

LONGEST_SYSTEM = 100


class Use(TextChoices):
    ITEM = "item", gettext_lazy("Item ID")
    CONTEXT = "context", gettext_lazy("Context")
    RESPONSE = "response", gettext_lazy("Response")
    SYSTEM = "system", gettext_lazy("System (hidden)")
    CONDITION = "condition", gettext_lazy("Condition")
    REFERENCE = "reference", gettext_lazy("Reference")
    PICTURE = "picture", gettext_lazy("Item picture")
    CANDIDATE = "candidate", gettext_lazy("Response ID")
    CANDIDATE_PICTURE = "candidate_picture", gettext_lazy("Response picture")
    EXTRA = "extra", gettext_lazy("Extra column")


# Labels in a study of alternatives, which has a target and its candidates.
POOL_LABELS = {
    Use.CONTEXT: gettext_lazy("Target text"),
    Use.RESPONSE: gettext_lazy("Candidate text"),
    Use.PICTURE: gettext_lazy("Target picture"),
    Use.CANDIDATE: gettext_lazy("Candidate ID"),
    Use.CANDIDATE_PICTURE: gettext_lazy("Candidate picture"),
}

# Of these there may be several: contexts follow one another, responses are of a system each, and
# extra columns are exported and not shown to annotators.
REPEATABLE = (Use.CONTEXT, Use.RESPONSE, Use.EXTRA)

# Names of columns as people give them, the likeliest first; compared in small letters, with
# underscores for whatever is neither letter nor digit, and without MTurk's `Input.`.
NAMES: dict[Use, tuple[str, ...]] = {
    Use.SYSTEM: (
        *("system", "model", "system_id", "model_id", "system_name", "model_name", "bot"),
        *("chatbot", "agent", "method", "generator", "engine"),
    ),
    Use.CANDIDATE: ("candidate", "candidate_id", "candidates_key", "candidates_id", "key", "docno"),
    Use.CANDIDATE_PICTURE: (
        *("candidate_picture", "candidate_image", "candidates_image", "candidates_picture"),
        *("response_image", "response_picture", "output_image"),
    ),
    Use.PICTURE: ("picture", "image", "target_image", "target_picture", "photo", "image_file"),
    Use.RESPONSE: (
        *("response", "output", "answer", "reply", "generation", "completion", "generated_text"),
        *("model_output", "system_output", "hypothesis", "candidates_title", "candidates_text"),
        *("candidate_text", "candidate_title", "prediction", "summary", "text"),
    ),
    Use.CONTEXT: (
        *("context", "history", "dialogue", "dialog", "conversation", "messages", "turns"),
        *("prompt", "question", "query", "source", "input", "instruction", "document", "article"),
        *("target_title", "target", "title", "mr"),
    ),
    Use.REFERENCE: (
        *("reference", "golden_answer", "gold", "gold_answer", "ground_truth", "references"),
        *("human_reference", "ideal"),
    ),
    Use.CONDITION: ("condition", "style", "domain", "category", "genre", "variant", "prompt_type"),
    Use.ITEM: (
        *("item", "item_id", "dialog_id", "dialogue_id", "conversation_id", "dlg_id"),
        *("question_id", "prompt_id", "example_id", "doc_id", "qid", "topic_id", "id", "hitid"),
    ),
}
# Columns that hold the dialogue of an item, or its name where another column holds the dialogue.
DIALOGUES = ("dialog", "dialogue", "conversation")
# Columns that number the items.
NUMBERS = ("no", "nr", "number", "n", "index", "row", "case", "example")
# Texts about a row that annotators are not asked about.
REMARKS = ("comment", "comments", "note", "notes", "remark", "remarks")
LONGEST_ITEM_NAME = 60
# Of columns that are guessed by their values alone.
MOST_SYSTEMS, LEAST_WORDS = 20, 2
# A column that is named "system" has at most so many of them.
MOST_DISTINCT_SYSTEMS = 200
FRACTION = re.compile(r"[-+]?\d*[.,]\d*(?:e[-+]?\d+)?%?", re.IGNORECASE)
# A response of a system has the system's name beside one of these.
RESPONSES = re.compile(
    r"^(?:responses?|outputs?|answers?|reply|generation|completion)[_.\- ]+(?P<after>.+)$"
    r"|^(?P<before>.+?)[_.\- ]+(?:responses?|outputs?|answers?|reply|generation|completion)$",
    re.IGNORECASE,
)


KEEP, LEAVE_OUT = "keep", "leave-out"


@dataclass(frozen=True)
class ColumnMapping:
    """What each column is used as; `fixes` has what is done about a problem, by its code."""

    uses: Mapping[str, Use] = field(default_factory=dict)
    systems: Mapping[str, str] = field(default_factory=dict)
    fixes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ColumnMapping:
        uses = {name: Use(use) for name, use in values.get("uses", {}).items()}
        return cls(uses, dict(values.get("systems", {})), dict(values.get("fixes", {})))

    @property
    def plain(self) -> dict[str, Any]:
        uses = {name: str(use) for name, use in self.uses.items()}
        fixes = {"fixes": dict(self.fixes)} if self.fixes else {}
        return {"uses": uses, "systems": dict(self.systems)} | fixes

    @cached_property
    def _columns_by_use(self) -> dict[Use, list[str]]:
        return group_values((use, name) for name, use in self.uses.items())

    def columns(self, use: Use) -> list[str]:
        return list(self._columns_by_use.get(use, ()))

    def column(self, use: Use) -> str | None:
        return next(iter(self._columns_by_use.get(use, ())), None)

    @property
    def is_wide(self) -> bool:
        return not (self.columns(Use.SYSTEM) or self.columns(Use.CANDIDATE))

    def system_of(self, column: str) -> str:
        return self.systems.get(column, "").strip() or system_in(column)

    def among(self, columns: Iterable[str]) -> ColumnMapping:
        uses = {name: self.uses[name] for name in columns if name in self.uses}
        return ColumnMapping(
            uses, {name: self.systems[name] for name in uses if name in self.systems}, self.fixes
        )

    def leaves_out(self, groups: Iterable[Any]) -> bool:
        """Whether items with these groups of faults are left out; without faults, none are."""
        return all(self.fixes.get(group.code) == LEAVE_OUT for group in groups)

    @property
    def makes_pool(self) -> bool:
        """Whether items are targets with candidates that no system made."""
        is_candidate = bool(self.columns(Use.CANDIDATE) or self.columns(Use.CANDIDATE_PICTURE))
        return is_candidate and bool(self.columns(Use.CONTEXT)) and not self.columns(Use.SYSTEM)


def mapping_faults(mapping: ColumnMapping, *, has_pictures: bool = False) -> list[CodedText]:
    faults = [
        CodedText(
            _("Only one column can be “{use}”: {columns}.").format(
                use=use.label, columns=", ".join(mapping.columns(use))
            ),
            "repeated_use",
        )
        for use in Use
        if use not in REPEATABLE and len(mapping.columns(use)) > 1
    ]
    responses = mapping.columns(Use.RESPONSE)
    of_pictures = mapping.columns(Use.CANDIDATE_PICTURE)
    systems = [mapping.system_of(column) for column in responses] if mapping.is_wide else []
    twice = sorted({name for name in systems if systems.count(name) > 1})
    rules: list[tuple[object, str, str]] = [
        (
            not responses and not of_pictures,
            _(
                "Choose at least one column as “Response”. A file of labels or ratings goes by "
                "“Labels that were collected elsewhere”, one page before."
            ),
            "no_response",
        ),
        (
            not mapping.is_wide and len(responses) > 1,
            _(
                "Where a column names the system, a row is one response, and only one column "
                "can be “Response”: {columns}."
            ).format(columns=", ".join(responses)),
            "several_responses",
        ),
        (
            twice,
            _("Two columns of responses have the same system: {names}.").format(
                names=", ".join(twice)
            ),
            "repeated_system",
        ),
        *(
            (
                len(name) > LONGEST_SYSTEM,
                _("A system's name has {n} characters at most: {name}…").format(
                    n=LONGEST_SYSTEM, name=name[:40]
                ),
                "system_too_long",
            )
            for name in systems
        ),
        (
            mapping.is_wide and of_pictures,
            _("Say which column is the system or the candidate that a picture is of."),
            "no_system_of_picture",
        ),
        (
            not has_pictures and (mapping.columns(Use.PICTURE) or of_pictures),
            _("The pictures did not come with the file: put both into a zip, and upload that."),
            "no_pictures",
        ),
    ]
    return faults + [CodedText(text, code) for is_broken, text, code in rules if is_broken]


def mapping_warnings(mapping: ColumnMapping) -> list[CodedText]:
    if mapping.columns(Use.ITEM):
        return []
    return [
        CodedText(
            _(
                "No column names the items, so each gets a code (a hash) as its name in exports "
                "and qrels. If a column has their names, choose it as “Item ID”"
            ),
            "no_item_column",
        )
    ]


@dataclass(frozen=True)
class Column:
    """What a column contains; numbers are 0 if its cells are not known.

    `n_words` is the mean of its filled cells. `lowest` and `highest` are set if all are numbers.
    """

    name: str
    first: str = ""
    n_filled: int = 0
    n_distinct: int = 0
    has_codes: bool = False
    has_files: bool = False
    n_words: float = 0
    lowest: str = ""
    highest: str = ""

    @property
    def is_text(self) -> bool:
        return self.n_words >= LEAST_WORDS and not self.has_files

    @property
    def is_name(self) -> bool:
        """Whether its cells may name something, as far as its first one shows."""
        return len(self.first) <= LONGEST_ITEM_NAME and len(self.first.split()) < 2

    def may_be(self, use: Use) -> bool:
        """Whether the values allow a use that the column's name suggests."""
        if use in (Use.PICTURE, Use.CANDIDATE_PICTURE):
            return self.has_files or self.n_words < LEAST_WORDS
        if use is Use.SYSTEM and (self.n_distinct > MOST_DISTINCT_SYSTEMS or self.n_words > 6):
            return False
        return not self.has_files


def guess_mapping(
    columns: Sequence[Column], sample: Sequence[Mapping[str, Any]] = (), *, n_rows: int = 0
) -> ColumnMapping:
    """What columns of these names and values probably are; `sample` has the first rows."""
    uses = _Guess(columns, sample, n_rows).uses
    return ColumnMapping(
        {column.name: uses[column.name] for column in columns if column.name in uses}
    )


class _Guess:
    def __init__(
        self, columns: Sequence[Column], sample: Sequence[Mapping[str, Any]], n_rows: int
    ) -> None:
        self._columns = {column.name: column for column in columns}
        self._sample, self._n_rows = sample, n_rows
        self.uses: dict[str, Use] = {}
        self._guess_by_name()
        if not self._column(Use.ITEM):
            self._guess_name_of_dialogues()
        if self._is_wide:
            self._guess_columns_of_systems()
        if not self._column(Use.ITEM):
            self._guess_item()
        self._drop_key_of_rows()
        if sample:
            self._guess_pictures()
            self._guess_candidates_and_systems()
            self._guess_texts()

    def _column(self, use: Use) -> str | None:
        return next((name for name, each in self.uses.items() if each is use), None)

    def _unused(self) -> list[Column]:
        return [column for name, column in self._columns.items() if name not in self.uses]

    @property
    def _is_wide(self) -> bool:
        return not (self._column(Use.SYSTEM) or self._column(Use.CANDIDATE))

    def _guess_by_name(self) -> None:
        plain = {name: plain_name(name) for name in self._columns}
        for use, names in NAMES.items():
            found = (
                name
                for known in names
                for name, column in self._columns.items()
                if plain[name] == known and name not in self.uses and column.may_be(use)
            )
            if name := next(found, None):
                self.uses[name] = use

    def _guess_name_of_dialogues(self) -> None:
        """The column that names dialogues beside the one that holds them: with as many values as
        there are dialogues, or more."""
        context = self._column(Use.CONTEXT)
        n_dialogues = self._columns[context].n_distinct if context else 0
        for column in self._unused() if context else ():
            is_dialogue = plain_name(column.name) in DIALOGUES and column.is_name
            if is_dialogue and (not column.n_filled or column.n_distinct >= n_dialogues):
                self.uses[column.name] = Use.ITEM
                return

    def _guess_columns_of_systems(self) -> None:
        answered = [name.removeprefix("Answer.") for name in self._columns if _is_answer(name)]
        for name in self._columns:
            bare = name.removeprefix("Input.")
            is_rated = any(each.endswith((f"_{bare}", f".{bare}")) for each in answered)
            is_named = RESPONSES.match(bare) and name not in self.uses
            if not _is_answer(name) and (is_rated or is_named):
                self.uses[name] = Use.RESPONSE

    def _guess_item(self) -> None:
        """A column of codes that tells items apart: it has the place of the context, and another
        column has a text or a picture for each code; or it has as many codes as there are items;
        or its codes repeat, and another column has one text or picture for each of them."""
        unused = [column for column in self._unused() if column.n_distinct]
        contexts = [self._columns[name] for name, use in self.uses.items() if use is Use.CONTEXT]
        for column in (each for each in contexts if each.has_codes):
            for text in (*contexts, *unused):
                fits = not (text.has_codes or text.has_files or text.lowest)
                if fits and text.n_distinct <= column.n_distinct:
                    self.uses |= {column.name: Use.ITEM, text.name: Use.CONTEXT}
                    return
            if self._column(Use.PICTURE):
                self.uses[column.name] = Use.ITEM
                return
        n_items = (
            self._n_rows if self._is_wide else max((c.n_distinct for c in contexts), default=0)
        )
        # Latencies and ratings are numbers too.
        codes = [c for c in unused if c.has_codes and (not c.lowest or is_number_name(c.name))]
        repeated = [c for c in codes if 1 < c.n_distinct < self._n_rows and self._has_one_text(c)]
        repeated.sort(key=lambda column: -column.n_distinct)
        counted = [column for column in codes if column.n_distinct == n_items]
        if found := [*repeated, *counted] if self._is_wide else [*counted, *repeated]:
            self.uses[found[0].name] = Use.ITEM

    def _has_one_text(self, key: Column) -> bool:
        return any(
            (other.is_text or other.has_files) and self._determines(key.name, other.name)
            for other in self._columns.values()
            if other.name != key.name
        )

    def _drop_key_of_rows(self) -> None:
        """In a table of a row a response, what is different in each row names no item."""
        item, system = self._column(Use.ITEM), self._column(Use.SYSTEM)
        if item and system and self._column(Use.CONTEXT):
            is_key = self._columns[item].n_distinct == self._n_rows > 1
            if is_key and self._columns[system].n_distinct >= 2:
                del self.uses[item]

    def _determines(self, key: str, name: str) -> bool:
        """Whether rows with equal keys have equal cells."""
        cells: dict[str, Any] = {}
        return all(
            cells.setdefault(str(row.get(key)), row.get(name)) == row.get(name)
            for row in self._sample
        )

    def _is_per_item(self, name: str) -> bool:
        key = self._column(Use.ITEM) or self._column(Use.CONTEXT)
        return key is None or self._determines(key, name)

    @property
    def _repeats_items(self) -> bool:
        key = self._column(Use.ITEM) or self._column(Use.CONTEXT)
        return key is not None and self._columns[key].n_distinct < self._n_rows

    def _guess_pictures(self) -> None:
        picture = self._column(Use.PICTURE)
        if picture and not self._column(Use.CANDIDATE_PICTURE) and not self._is_per_item(picture):
            self.uses[picture] = Use.CANDIDATE_PICTURE
        for column in self._unused():
            is_of_item = not self._repeats_items or self._is_per_item(column.name)
            use = Use.PICTURE if is_of_item else Use.CANDIDATE_PICTURE
            if column.has_files and not self._column(use):
                self.uses[column.name] = use

    def _guess_candidates_and_systems(self) -> None:
        if not (self._is_wide and self._repeats_items):
            return
        for column in self._unused():
            if column.has_codes and column.n_distinct == self._n_rows:
                self.uses[column.name] = Use.CANDIDATE
                return
        key = self._column(Use.ITEM) or self._column(Use.CONTEXT) or ""
        for column in self._unused():
            is_few = 2 <= column.n_distinct <= MOST_SYSTEMS and column.n_filled == self._n_rows
            if not is_few or column.lowest or column.has_files or not column.is_name:
                continue
            pairs = {(str(row.get(key)), str(row.get(column.name))) for row in self._sample}
            if len(pairs) == len(self._sample):
                self.uses[column.name] = Use.SYSTEM
                return

    def _guess_texts(self) -> None:
        texts = [
            column
            for column in self._unused()
            if column.is_text and not _is_answer(column.name)
            if plain_name(column.name) not in REMARKS
        ]
        texts.sort(key=lambda column: -column.n_words)
        is_wide = self._is_wide and not self._repeats_items
        if not is_wide:
            of_rows = [column for column in texts if not self._is_per_item(column.name)]
            self._guess_first(of_rows, Use.RESPONSE)
            self._guess_first([c for c in texts if c not in of_rows], Use.CONTEXT)
        elif not self._column(Use.RESPONSE) and not self._column(Use.CANDIDATE_PICTURE):
            texts = [column for column in self._unused() if column in texts]
            if len(texts) > 1 and not self._column(Use.CONTEXT):
                self.uses[texts.pop(0).name] = Use.CONTEXT
            self.uses |= {column.name: Use.RESPONSE for column in texts}

    def _guess_first(self, columns: Sequence[Column], use: Use) -> None:
        if columns and not self._column(use):
            self.uses[columns[0].name] = use


def _is_answer(column: str) -> bool:
    return column.startswith("Answer.")


def guess_reasons(
    guessed: ColumnMapping, columns: Sequence[Column], n_rows: int = 0
) -> dict[str, CodedText]:
    """Why each column has its use, and what is in a column without one."""
    items = guessed.column(Use.ITEM)
    n_items = next((column.n_distinct for column in columns if column.name == items), n_rows)
    return {column.name: _guess_reason(column, guessed, n_rows, n_items) for column in columns}


def _guess_reason(column: Column, guessed: ColumnMapping, n_rows: int, n_items: int) -> CodedText:
    name, use = column.name, guessed.uses.get(column.name)
    if use is None:
        text = _("Not shown to annotators.")
        if column.lowest:
            values = _("Numbers, {low} to {high}.").format(low=column.lowest, high=column.highest)
            return CodedText(f"{values} {text}", "numbers")
        return CodedText(text if column.n_filled else _("Empty."), "unused")
    seen = _values_in_words(column, use, n_rows, is_repeated=n_items < n_rows)
    if plain_name(name) in NAMES[use]:
        text = _("Columns with this name usually are “{use}”.").format(use=use.label)
        return CodedText(seen or text, "usual_name")
    if use is Use.RESPONSE and guessed.is_wide:
        if RESPONSES.match(name.removeprefix("Input.")):
            text = _("Its name contains that of the system {system}.")
            return CodedText(text.format(system=guessed.system_of(name)), "named_after_system")
        if column.is_text:
            text = _("Text in each row, next to that of other systems.")
            return CodedText(text, "text_per_row")
        return CodedText(_("A column of answers rates it."), "rated_by_column")
    codes = {
        Use.ITEM: "codes" if column.has_codes else "names_dialogues",
        Use.CONTEXT: "text_per_item",
        Use.RESPONSE: "text_per_row",
        Use.PICTURE: "files",
        Use.CANDIDATE_PICTURE: "files",
        Use.CANDIDATE: "unique",
    }
    return CodedText(seen or _("Each row has a code, such as T01."), codes.get(use, "few_values"))


def _values_in_words(column: Column, use: Use, n_rows: int, *, is_repeated: bool) -> str:
    """What the values have in common; "" if they are not known."""
    n, per_row = column.n_distinct, _("one per row")
    per = _("one per item") if is_repeated else per_row
    counts = {"n": f"{n:,}", "rows": f"{n_rows:,}"}
    if not (n and n_rows):
        return ""
    match use:
        case Use.ITEM | Use.CANDIDATE:
            if n < n_rows and n_rows % n == 0 and column.n_filled == n_rows:
                return _("{n} unique values; each is in {share} rows.").format(
                    **counts, share=f"{n_rows // n:,}"
                )
            return _("{n} unique values in {rows} rows.").format(**counts)
        case Use.SYSTEM | Use.CONDITION:
            return ngettext("%(n)s different value.", "%(n)s different values.", n) % counts
        case Use.PICTURE | Use.CANDIDATE_PICTURE if column.has_files:
            return _("File names; {per}.").format(per=per if use is Use.PICTURE else per_row)
        case Use.CONTEXT | Use.REFERENCE:
            return _("Text; {per}.").format(per=per)
        case Use.RESPONSE if not (is_repeated and n == 1):
            return _("Text; {per}.").format(per=per_row)
    return ""


def is_number_name(column: str) -> bool:
    plain = plain_name(column)
    return plain in NUMBERS or plain.endswith(("id", "_no", "_nr"))


def is_code(value: object) -> bool:
    """Whether a cell may name an item, such as T01, ctx-7 or 12: a short word with a digit that is
    no fraction.

    Examples
    --------
    >>> [is_code(value) for value in ("T01", 12, "Hi", "7.5", "a 1")]
    [True, True, False, False, False]
    """
    text = str(value).strip()
    is_word = len(text) <= LONGEST_ITEM_NAME and len(text.split()) == 1
    return is_word and any(map(str.isdigit, text)) and not FRACTION.fullmatch(text)


def plain_name(column: str) -> str:
    bare = column.strip().removeprefix("Input.")
    bare = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bare) if not bare.isupper() else bare
    return re.sub(r"[^\w]+|_+", "_", bare.lower()).strip("_").replace("hit_id", "hitid")


def system_in(column: str) -> str:
    bare = column.removeprefix("Input.")
    match = RESPONSES.match(bare)
    return (match["after"] or match["before"]) if match else bare
