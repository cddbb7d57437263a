import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from xml.etree.ElementTree import Element

import regex  # type: ignore[import-untyped]
from django.utils.translation import gettext as _

from error_codes import CodedText, require
from marketplace.documents.contents import Children, name_of, whole_number
from marketplace.exceptions import InvalidQuestion

# A pattern is the requester's and the text the worker's: neither may keep the server busy.
PATTERN_TIMEOUT_SECONDS = 0.2
MOST_PATTERN_SECONDS = 0.5  # for all patterns of a submission
MOST_PATTERNS = 100
# Of all patterns of a form, in states; a state takes about half a kilobyte once compiled.
MOST_STATES = 50_000
# The library writes out the least count of a repetition: `(ab){1000}` becomes 1,000 copies.
LEAST_COUNT = re.compile(r"(.?)\{([0-9]+)", re.DOTALL)
# In this mode, of which JavaScript has none, a count may contain spaces and comments.
VERBOSE = re.compile(r"\(\?[a-zA-Z0-9-]*x")
MOST_LINES = 100


@dataclass(frozen=True)
class FreeText:
    default: str = ""
    lines: int = 1
    minimum_length: int = 0
    maximum_length: int | None = None
    is_numeric: bool = False
    least: Decimal | None = None
    greatest: Decimal | None = None
    patterns: tuple["Pattern", ...] = ()

    def complaint(self, text: str, budget: "PatternBudget") -> CodedText | None:
        if len(text) < self.minimum_length:
            sentence = _("Write at least %(minimum_length)s characters; there are %(n_text)s.")
            return CodedText(
                sentence % {"minimum_length": self.minimum_length, "n_text": len(text)}, "too_short"
            )
        if self.maximum_length is not None and len(text) > self.maximum_length:
            sentence = _("Write at most %(maximum_length)s characters; there are %(n_text)s.")
            return CodedText(
                sentence % {"maximum_length": self.maximum_length, "n_text": len(text)}, "too_long"
            )
        if self.is_numeric and (complaint := self._numeric_complaint(text)):
            return complaint
        failed = (pattern for pattern in self.patterns if not pattern.matches(text, budget))
        return next((pattern.complaint for pattern in failed), None)

    def _numeric_complaint(self, text: str) -> CodedText | None:
        number = _decimal(text)
        if number is None:
            return CodedText(_("Write a number."), "not_a_number")
        if self.least is not None and number < self.least:
            sentence = _("Write a number of at least %(least)s.")
            return CodedText(sentence % {"least": self.least}, "too_small")
        if self.greatest is not None and number > self.greatest:
            sentence = _("Write a number of at most %(greatest)s.")
            return CodedText(sentence % {"greatest": self.greatest}, "too_large")
        return None


@dataclass
class PatternBudget:
    seconds: float = MOST_PATTERN_SECONDS


@dataclass(frozen=True)
class Pattern:
    """A regular expression to be found anywhere in the answer, as in JavaScript."""

    expression: str
    complaint: CodedText
    ignores_case: bool

    def matches(self, text: str, budget: PatternBudget) -> bool:
        # A pattern that runs out of time refuses no answer.
        if budget.seconds <= 0:
            return True
        began = time.thread_time()
        try:
            return (
                self.compiled.search(text, timeout=min(PATTERN_TIMEOUT_SECONDS, budget.seconds))
                is not None
            )
        except TimeoutError:
            return True
        finally:
            budget.seconds -= time.thread_time() - began

    def check(self) -> None:
        try:
            _ = self.compiled
        except (regex.error, ValueError, RecursionError) as error:
            raise InvalidQuestion(
                f"The regular expression {self.expression[:80]!r} can't be read: {error}.",
                code="invalid_regex",
            ) from error

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        # The library's own cache would keep hundreds of large expressions.
        return regex.compile(
            self.expression, regex.IGNORECASE if self.ignores_case else 0, cache_pattern=False
        )


def check_patterns(elements: Iterable[Element]) -> None:
    patterns = [each.get("regex", "") for each in elements if name_of(each) == "AnswerFormatRegex"]
    require(
        len(patterns) <= MOST_PATTERNS,
        InvalidQuestion(
            f"A QuestionForm has at most {MOST_PATTERNS} regular expressions, not {len(patterns)}.",
            code="too_many_patterns",
        ),
    )
    require(
        not any(map(VERBOSE.search, patterns)),
        InvalidQuestion(
            "A regular expression can't have the flag x here; write it without it.",
            code="verbose_pattern",
        ),
    )
    require(
        sum(map(count_states, patterns)) <= MOST_STATES,
        InvalidQuestion(
            f"The regular expressions of a QuestionForm have more than {MOST_STATES:,} states once "
            "their repetitions are written out. Use smaller counts, or a Length constraint.",
            code="patterns_too_large",
        ),
    )


def count_states(expression: str) -> int:
    """An upper bound of an expression's states once the library has written out its repetitions.
    It does not rely on reading the expression as the library does: a count after a group
    applies to the whole expression, one after a set to a set as long as the expression."""
    length, copies = len(expression), 1
    for before, digits in LEAST_COUNT.findall(expression):
        # int() refuses thousands of digits; nine are too many already.
        count = max(int(digits.lstrip("0")[:9] or 0), 1)
        if before in ")}?*+":  # the end of a group, of a \p{…}, or of another repetition
            copies *= count
        else:
            length += count * (len(expression) if before == "]" else 1)
    return length * copies


def read_free_text(element: Element) -> FreeText:
    children = Children(element)
    element_of_constraints = children.optional("Constraints")
    default = children.optional("DefaultText")
    lines = children.number("NumberOfLinesSuggestion", 1)
    children.finish()
    constraints = None if element_of_constraints is None else Children(element_of_constraints)
    length = constraints.optional("Length") if constraints else None
    numeric = constraints.optional("IsNumeric") if constraints else None
    patterns = tuple(map(_pattern, constraints.all("AnswerFormatRegex"))) if constraints else ()
    if constraints:
        constraints.finish()
    minimum, maximum = _lengths(length)
    return FreeText(
        default="" if default is None else default.text or "",
        lines=min(max(lines, 1), MOST_LINES),
        minimum_length=minimum,
        maximum_length=maximum,
        is_numeric=numeric is not None,
        least=_bound(numeric, "minValue"),
        greatest=_bound(numeric, "maxValue"),
        patterns=patterns,
    )


def _lengths(element: Element | None) -> tuple[int, int | None]:
    if element is None:
        return 0, None
    minimum = whole_number(element.get("minLength", "0"), "minLength")
    most = element.get("maxLength")
    maximum = None if most is None else whole_number(most, "maxLength")
    require(
        maximum is None or (minimum <= maximum and maximum > 0),
        InvalidQuestion(
            f"No text has from {minimum} to {maximum} characters.", code="impossible_length"
        ),
    )
    return minimum, maximum


def _pattern(element: Element) -> Pattern:
    flags = element.get("flags", "")
    complaint = element.get("errorText") or _("This is not in the form that is asked for.")
    pattern = Pattern(element.get("regex", ""), CodedText(complaint, "wrong_form"), "i" in flags)
    require(
        pattern.expression,
        InvalidQuestion("AnswerFormatRegex must have a regex.", code="missing_regex"),
    )
    pattern.check()
    return pattern


def _bound(element: Element | None, name: str) -> Decimal | None:
    text = None if element is None else element.get(name)
    if text is None:
        return None
    number = _decimal(text)
    if number is None:
        raise InvalidQuestion(f"{name} must be a number, got {text[:40]!r}.", code="not_a_number")
    return number


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
