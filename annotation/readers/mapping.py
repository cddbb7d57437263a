from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext as _, gettext_lazy

from error_codes import CodedText
from presentation.records import group_values

LONGEST_SYSTEM = 100


class Use(TextChoices):
    ITEM = "item", gettext_lazy("Item")
    CONTEXT = "context", gettext_lazy("Context")
    RESPONSE = "response", gettext_lazy("Response")
    SYSTEM = "system", gettext_lazy("System, not shown")
    CONDITION = "condition", gettext_lazy("Condition")
    REFERENCE = "reference", gettext_lazy("Reference")
    PICTURE = "picture", gettext_lazy("Picture of the item")
    CANDIDATE = "candidate", gettext_lazy("Name of the candidate")
    CANDIDATE_PICTURE = "candidate_picture", gettext_lazy("Picture of the candidate")


# Of these there may be several: contexts follow one another, responses are of a system each.
REPEATABLE = (Use.CONTEXT, Use.RESPONSE)

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
LONGEST_ITEM_NAME = 60
FRACTION = re.compile(r"[-+]?\d*[.,]\d*(?:e[-+]?\d+)?%?", re.IGNORECASE)
# A response of a system has the system's name beside one of these.
RESPONSES = re.compile(
    r"^(?:responses?|outputs?|answers?|reply|generation|completion)[_.\- ]+(?P<after>.+)$"
    r"|^(?P<before>.+?)[_.\- ]+(?:responses?|outputs?|answers?|reply|generation|completion)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ColumnMapping:
    uses: Mapping[str, Use] = field(default_factory=dict)
    systems: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ColumnMapping:
        uses = {name: Use(use) for name, use in values.get("uses", {}).items()}
        return cls(uses, dict(values.get("systems", {})))

    @property
    def plain(self) -> dict[str, Any]:
        uses = {name: str(use) for name, use in self.uses.items()}
        return {"uses": uses, "systems": dict(self.systems)}

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
        present = list(columns)
        uses = {name: self.uses[name] for name in present if name in self.uses}
        return ColumnMapping(
            uses, {name: self.systems[name] for name in uses if name in self.systems}
        )


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
                "and qrels. If a column has their names, choose it as “Item”"
            ),
            "no_item_column",
        )
    ]


def guess_mapping(
    columns: Sequence[str],
    *,
    n_rows: int = 0,
    n_distinct: Mapping[str, int] | None = None,
    first: Mapping[str, str] | None = None,
    codes: Collection[str] = (),
) -> ColumnMapping:
    """What columns of these names, and with these first values, probably are.

    `codes` are the columns whose values all look like codes, such as T01 (`is_code`).
    """
    uses: dict[str, Use] = {}
    plain = {name: plain_name(name) for name in columns}
    for use, names in NAMES.items():
        column = next((c for n in names for c in columns if plain[c] == n and c not in uses), None)
        if column is not None:
            uses[column] = use
    if Use.ITEM not in uses.values():
        uses |= _name_of_dialogues([c for c in columns if c not in uses], uses, n_distinct, first)
    guessed = ColumnMapping({name: uses[name] for name in columns if name in uses})
    if guessed.is_wide:
        guessed = _with_columns_of_systems(guessed, columns)
    if not guessed.columns(Use.ITEM):
        uses = {**guessed.uses, **_item_of_codes(guessed, columns, n_rows, n_distinct or {}, codes)}
        guessed = ColumnMapping({name: uses[name] for name in columns if name in uses})
    return _without_key_of_rows(guessed, n_rows, n_distinct or {})


def guess_reasons(guessed: ColumnMapping, codes: Collection[str] = ()) -> dict[str, CodedText]:
    return {name: _guess_reason(name, use, guessed, codes) for name, use in guessed.uses.items()}


def _guess_reason(name: str, use: Use, guessed: ColumnMapping, codes: Collection[str]) -> CodedText:
    if plain_name(name) in NAMES[use]:
        return CodedText(
            _("Columns with such a name usually are “{use}”.").format(use=use.label), "usual_name"
        )
    if use is Use.RESPONSE and RESPONSES.match(name.removeprefix("Input.")):
        return CodedText(
            _("Its name contains that of the system {system}.").format(
                system=guessed.system_of(name)
            ),
            "named_after_system",
        )
    if use is Use.RESPONSE:
        return CodedText(_("A column of answers rates it."), "rated_by_column")
    if use is Use.ITEM and name in codes:
        return CodedText(_("Each row has a code in it, such as T01."), "codes")
    if use is Use.ITEM:
        return CodedText(_("It names the dialogues of another column."), "names_dialogues")
    return CodedText(_("It has a text for each item."), "text_per_item")


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


def _item_of_codes(
    mapping: ColumnMapping,
    columns: Sequence[str],
    n_rows: int,
    counts: Mapping[str, int],
    codes: Collection[str],
) -> dict[str, Use]:
    """A column of codes that tells items apart: it has the place of the context, and another
    column has a text or a picture for each code; or it has as many codes as there are items."""
    unused = [name for name in columns if name not in mapping.uses and counts.get(name)]
    contexts = mapping.columns(Use.CONTEXT)
    for name in contexts:
        texts = [c for c in (*contexts, *unused) if c not in codes and counts[c] <= counts[name]]
        if name in codes and texts:
            return {name: Use.ITEM, texts[0]: Use.CONTEXT}
        if name in codes and mapping.columns(Use.PICTURE):
            return {name: Use.ITEM}
    n_items = n_rows if mapping.is_wide else max((counts[name] for name in contexts), default=0)
    found = (name for name in unused if name in codes and counts[name] == n_items)
    return dict.fromkeys(islice(found, 1), Use.ITEM)


def _name_of_dialogues(
    unused: Sequence[str],
    uses: Mapping[str, Use],
    n_distinct: Mapping[str, int] | None,
    first: Mapping[str, str] | None,
) -> dict[str, Use]:
    """The column that names dialogues beside the one that holds them: of one word, as far as its
    first value shows, and with as many values as there are dialogues, or more."""
    contexts = [name for name, use in uses.items() if use is Use.CONTEXT]
    counts, values = n_distinct or {}, first or {}
    for column in unused if contexts else ():
        value = values.get(column, "")
        is_name = len(value) <= LONGEST_ITEM_NAME and len(value.split()) < 2
        tells_apart = counts.get(column, 1) >= counts.get(contexts[0], 0)
        if plain_name(column) in DIALOGUES and is_name and tells_apart:
            return {column: Use.ITEM}
    return {}


def _with_columns_of_systems(mapping: ColumnMapping, columns: Sequence[str]) -> ColumnMapping:
    answered = [name.removeprefix("Answer.") for name in columns if name.startswith("Answer.")]
    matches = {}
    for column in columns:
        bare = column.removeprefix("Input.")
        is_rated = any(
            answer.endswith(f"_{bare}") or answer.endswith(f".{bare}") for answer in answered
        )
        is_answer = column.startswith("Answer.")
        if not is_answer and (is_rated or (RESPONSES.match(bare) and column not in mapping.uses)):
            matches[column] = Use.RESPONSE
    if not matches:
        return mapping
    uses = dict(mapping.uses) | matches
    return ColumnMapping({name: uses[name] for name in columns if name in uses})


def _without_key_of_rows(
    mapping: ColumnMapping, n_rows: int, n_distinct: Mapping[str, int]
) -> ColumnMapping:
    """In a table of a row a response, what is different in each row names no item."""
    item, system = mapping.column(Use.ITEM), mapping.column(Use.SYSTEM)
    is_key = item is not None and system is not None and n_distinct.get(item, 0) == n_rows > 1
    has_context = bool(mapping.columns(Use.CONTEXT))
    if not is_key or not has_context or n_distinct.get(system or "", 0) < 2:
        return mapping
    uses = {name: use for name, use in mapping.uses.items() if name != item}
    return ColumnMapping(uses, mapping.systems)


def plain_name(column: str) -> str:
    bare = column.strip().removeprefix("Input.")
    bare = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bare) if not bare.isupper() else bare
    return re.sub(r"[^\w]+|_+", "_", bare.lower()).strip("_").replace("hit_id", "hitid")


def system_in(column: str) -> str:
    bare = column.removeprefix("Input.")
    match = RESPONSES.match(bare)
    return (match["after"] or match["before"]) if match else bare
