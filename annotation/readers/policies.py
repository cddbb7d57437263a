import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext as _, ngettext

from annotation.readers.drafts import ReadingReport
from annotation.readers.rows import MISSING_WORDS
from error_codes import CodedText
from presentation.numbers import group_values

Missing = Literal["words", "empty"]
Unmatched = Literal["refuse", "leave-out"]
Repeats = Literal["refuse", "first", "last", "mean", "majority", "count"]
REPEATS: tuple[Repeats, ...] = ("refuse", "first", "last", "mean", "majority")
Categories = Literal["as-written", "merged"]
Difference = Literal["number", "unicode", "space", "case"]

MISSING = CodedText("the label is missing", "missing_label")
REPEATED = CodedText("another label of the same annotator counts", "repeated_label")
MOST_PAIRS = 5
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
SPACES = re.compile(r"\s+")
# A whole number, which looks like no other whole number.
PLAIN_NAME = re.compile(r"(?:0|[1-9][0-9]{0,14})")


@dataclass(frozen=True)
class Policies:
    """The choices for missing words, repeated labels and categories that look alike.

    `unmatched` is for rows about items or candidates that the study does not have. `repeats` is ""
    for the command's own default. A `shape` of "" is found from the file.
    """

    missing: Missing = "words"
    repeats: Repeats | Literal[""] = ""
    categories: Categories = "as-written"
    shape: str = ""
    unmatched: Unmatched = "refuse"

    def is_missing(self, text: str) -> bool:
        return not text or (self.missing == "words" and text in MISSING_WORDS)


@dataclass(frozen=True)
class Reading:
    policies: Policies = field(default_factory=Policies)
    report: ReadingReport = field(default_factory=ReadingReport)

    def repeats(self, default: Repeats) -> Repeats:
        chosen = self.policies.repeats or default
        self.report.policies["repeats"] = chosen
        return chosen

    def state_policies(self, *, categories: bool = False) -> None:
        self.report.policies["missing"] = self.policies.missing
        if categories:
            self.report.policies["categories"] = self.policies.categories


def look_alike_key(text: str) -> str | float:
    """A key that is equal for texts that differ only as numbers, by Unicode form, space or case."""
    # Most names, of which a file may have a million.
    if text.isascii() and text.isidentifier():
        return text.lower()
    if PLAIN_NAME.fullmatch(text) or NUMBER.fullmatch(text.strip()):
        return float(text)
    return SPACES.sub(" ", _visible(text)).strip().casefold()


def _visible(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return "".join(each for each in text if unicodedata.category(each) != "Cf")


def look_alikes(words: Iterable[str]) -> list[list[str]]:
    groups = group_values((look_alike_key(word), word) for word in words)
    return [group for group in groups.values() if len(group) > 1]


def kind_of_difference(one: str, other: str) -> Difference:
    if isinstance(look_alike_key(one), float):
        return "number"
    if SPACES.sub(" ", one).strip() == SPACES.sub(" ", other).strip():
        return "space"
    if SPACES.sub(" ", _visible(one)).strip() == SPACES.sub(" ", _visible(other)).strip():
        return "unicode"
    return "case"


def note_look_alikes(report: ReadingReport, words: Sequence[str], *, what: str, code: str) -> None:
    for difference, found in group_values(
        (kind_of_difference(group[0], other), f"'{group[0]}'/'{other}'")
        for group in look_alikes(words)
        for other in group[1:]
    ).items():
        shown = ", ".join(found[:MOST_PAIRS]) + (", …" if len(found) > MOST_PAIRS else "")
        text = ngettext(
            "%(n)s pair of %(what)s differs only %(how)s: %(pairs)s.",
            "%(n)s pairs of %(what)s differ only %(how)s: %(pairs)s.",
            len(found),
        ) % {"n": f"{len(found):,}", "what": what, "how": _how(difference), "pairs": shown}
        if code == "look_alike_categories":
            text += " " + _("--merge-categories counts them as one.")
        report.note(CodedText(text, code))


def _how(difference: Difference) -> str:
    return {
        "number": _("in how numbers are written"),
        "unicode": _("by Unicode form"),
        "space": _("by space"),
        "case": _("by case"),
    }[difference]


def merged_categories(words: Sequence[str], counts: Sequence[int]) -> dict[str, str]:
    number = dict(zip(words, counts, strict=True))
    merged: dict[str, str] = {}
    for group in look_alikes(words):
        # The first of equally frequent ones.
        kept = max(group, key=lambda word: number[word])
        merged |= {word: kept for word in group if word != kept}
    return merged


def merged_note(merged: Mapping[str, str], counts: Mapping[str, int]) -> CodedText:
    n = sum(counts[word] for word in merged)
    pairs = ", ".join(f"'{one}' as '{other}'" for one, other in list(merged.items())[:MOST_PAIRS])
    return CodedText(
        ngettext(
            "%(n)s label counts as another category: %(pairs)s.",
            "%(n)s labels count as another category: %(pairs)s.",
            n,
        )
        % {"n": f"{n:,}", "pairs": pairs},
        "merged_categories",
    )


def repeats_note(n: int, repeats: Repeats) -> CodedText:
    if repeats == "mean":
        text = ngettext(
            "%(n)s repeated label was averaged with the annotator's first label.",
            "%(n)s repeated labels were averaged with the annotators' first labels.",
            n,
        )
    else:
        text = ngettext(
            "%(n)s repeated label was read with the annotator's first label; the most frequent "
            "label counts.",
            "%(n)s repeated labels were read with the annotators' first labels; the most frequent "
            "label counts.",
            n,
        )
    return CodedText(text % {"n": f"{n:,}"}, f"repeats_{repeats}")


def mean_of_known(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def mode_of_known(values: Sequence[Any]) -> Any:
    known = [value for value in values if value == value]
    return Counter(known).most_common(1)[0][0] if known else math.nan
