"""Finding the score in a judge's reply: each number is the score, or something else.

Scales, lists, thoughts and JSON texts are blanked first, so that positions stay those of the
reply. Of the numbers that are left, those behind a label or a verb ("Rating: 4", "I give it a
4") and fractions of the scale ("4/5") are labeled. Without a labeled number, one that stands
by itself counts ("4", "3. The response ...", "somewhat coherent (2)"). Numbers that count
something ("4 criteria", "turn 2") never do.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from metrics.scorers.judges import score_words as words

Problem = Literal["no_number", "no_score", "ambiguous", "other_scale"]
NUMBER = re.compile(
    r"(?<![A-Za-zÀ-ɏͰ-ӿ0-9.,/⁄])(?<![A-Za-z0-9]_)[-−]?(?:\d+(?:[.,]\d+)*|\.\d+)"
    r"(?![A-Za-zÀ-ɏͰ-ӿ0-9]|_[A-Za-z0-9]|-points?\b)"
)
PLAIN = re.compile(r"[-−]?(?:\d+(?:\.\d+)?|\.\d+)")
DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
THOUGHTS = re.compile(
    r"\A.*</(?:think|thinking|reasoning|scratchpad)>|"
    r"<(?:think|thinking|reasoning|scratchpad)>.*|"
    r"\A.*<\|channel\|>final<\|message\|>|<\|channel\|>(?:analysis|commentary)<\|message\|>.*",
    re.DOTALL | re.I,
)
JSON_TEXT = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*+)"(?P<is_key>\s*:)?')
JSON_VALUE = re.compile(r"\s*[-\d][\d\s./,–—-]*(?:out of \d+\s*)?")
LIST_MARK = re.compile(r"(?<![^\s(])\(?(\d{1,2})[.)](?=\s+\S)")
WIDE = str.maketrans("：／（）［］－，．％｜", ":/()[]-,.%|")
SCALE_WORDS = r"scale|skala|échelle|escala|scala|шкал\w*|schaal"
AFTER_NUMBER = re.compile(rf"\d[*_)\]\"'.]*\s*(?:{words.UNITS}|{words.JOINED_UNITS})?\s*$", re.I)
LEAD = re.compile(r"([A-Za-zÀ-ɏͰ-ӿ]+)[ \t*_\"'`-]*\Z")
MARKUP = " \t*_`\"'“”‘«»[]{}()|>#=~≈\\.!"
CLAUSE = re.compile(r"[.;:!?,\n(]\s|\n|\bbut\b|\bso\b")
# Characters; of a longer reply the end is read.
LONGEST = 10_000
MOST_NUMBERS = 300
# Characters before and after a number that are looked at.
NEAR = 160


class Mention(NamedTuple):
    """A number that may be the score, and how it is marked."""

    start: int = -1
    value: float = 0.0
    problem: Problem | None = None
    is_labeled: bool = False
    is_aspect: bool = False
    is_final: bool = False
    is_overall: bool = False


class Found(NamedTuple):
    """The score and where it begins in the reply; or why there is none."""

    value: float | None = None
    start: int = -1
    problem: Problem | None = None


def find_score(text: str, low: float, high: float, aspect: str = "") -> Found:
    """Find the score of a reply.

    Parameters
    ----------
    text : str
    low, high : float
        The ends of the scale that was asked for; a value off it is found all the same.
    aspect : str
        What is rated, as the form names it; a score of something else is no score. Any is one
        if this is empty.

    Returns
    -------
    Found

    Examples
    --------
    >>> find_score("**Overall Quality (1-5):** 4", 1, 5, "overall quality").value
    4.0
    >>> find_score("between 3 and 4", 1, 5).problem
    'ambiguous'
    """
    ascii_digits = (str(unicodedata.decimal(letter, letter)) for letter in text)
    digits = "".join(ascii_digits).translate(WIDE)
    skipped = max(0, len(digits) - LONGEST)
    digits = digits[skipped:]
    if not re.search(r"\d", digits):
        return Found(problem="no_number")
    plain, is_other_scale = _without_scales(_without_thoughts(digits), low, high)
    mentions = list(_mentions(_without_lists(plain), low, high, aspect))
    found = _chosen([one for one in mentions if one.is_labeled] or mentions)
    if found.problem is None and is_other_scale:
        return Found(problem="other_scale")
    return found._replace(start=found.start + skipped) if found.problem is None else found


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _without_thoughts(text: str) -> str:
    """Blank what a model thinks before its answer, and the texts in a reply of JSON."""
    text = THOUGHTS.sub(_blank, text)
    inner = re.sub(r"\A\s*```\w*|```\s*\Z", _blank, text)
    try:
        json.loads(inner)
    except (ValueError, RecursionError):
        return text
    return JSON_TEXT.sub(
        lambda one: (
            one.group() if one["is_key"] or JSON_VALUE.fullmatch(one["text"]) else _blank(one)
        ),
        inner,
    )


def _without_scales(text: str, low: float, high: float) -> tuple[str, bool]:
    """Blank mentions of the scale; also returns whether one is of another scale."""
    joined = rf"[ \t]*(?:{words.JOINS}|\.\.+|…)[ \t]*"
    some = r"\d{1,6}(?:\.\d{1,6})?"
    ends = rf"(?P<low>{some}){joined}(?P<high>{some})(?!\d|[.,]\d)"
    low_end, high_end = (re.escape(f"{end:g}") for end in (low, high))
    levels = r"\s*(?:,\s*or|,|/|\||or)\s*".join(
        rf"{level}(?:{words.MEANING})?"
        for level in range(int(low), min(int(high), int(low) + 12) + 1)
    )
    this = rf"(?<![\d.,/]){low_end}{joined}{high_end}(?![\d/]|[.,]\d)"
    described = (
        rf"(?<![\d.,/]){low_end}{words.MEANING}\s*(?:up\s+)?(?:{words.JOINS}|\.\.+|[…→/,;]|->|through)"
        rf"\s*{high_end}{words.MEANING}"
    )
    others = (
        rf"\b(?:{SCALE_WORDS})\W{{0,3}}(?:\w{{1,20}}\W{{1,3}}){{0,3}}?{ends}",
        rf"(?<![\d.,/]){ends}[\s-]*(?:point[\s-]*)?(?:{SCALE_WORDS})\b",
        rf"[(\[][^()\[\]\d]{{0,20}}{ends}[^()\[\]\n]{{0,60}}[)\]](?=\s*[*_]*\s*[:=])",
        rf"[(\[][^()\[\]\n\d]{{0,20}}(?P<low>{some})\b[^()\[\]\n\d/]{{2,60}}(?P<high>{some})\b"
        r"[^()\[\]\n\d]{0,60}[)\]](?=\s*[*_]*\s*[:=])",
        r"[(\[]?\b(?:out\s+of|sur|von)\s+(?P<high>\d{1,6})\b[)\]]?",
        r"[(\[]\s*/\s*(?P<high>\d{1,6})\s*[)\]]",
        r"(?:满分|滿分)\s*(?P<high>\d{1,6})\s*分?",
        r"(?<!\d)(?P<high>\d{1,6})\s*(?:点|分|점)\s*(?:満点|만점)(?:[でに에]|중)?",
        r"\b(?P<high>\d{1,6})\s+üzerinden",
    )
    one_end = rf"(?<=[(\[])(?:{low_end}|{high_end})\s*[=:]\s*[^()\[\]\n\d]{{1,40}}(?=[)\]])"
    enumerated = rf"(?<![\d.,/]){levels}(?![\d/]|[.,]\d)"
    is_other = False

    def replace(match: re.Match[str]) -> str:
        nonlocal is_other
        stated = match.groupdict()
        top, bottom = stated.get("high"), stated.get("low")
        if not bottom and AFTER_NUMBER.search(
            match.string[max(0, match.start() - 40) : match.start()]
        ):
            return match.group()  # of a fraction
        # The patterns read no sign.
        if top and (float(top) != abs(high) or (bottom and float(bottom) != abs(low))):
            is_other = True
        # "On a scale of 1 to 5: 4" labels the 4.
        label = "score" if re.search(SCALE_WORDS, match.group(), re.I) else ""
        return label.rjust(len(match.group()))

    for pattern in (*others, this, described, one_end, enumerated):
        text = re.sub(pattern, replace, text, flags=re.I)
    return re.sub(r"\b\d+[\s-]points?\s+scale\b", _blank, text, flags=re.I), is_other


def _without_lists(text: str) -> str:
    counts = [int(mark.group(1)) for mark in LIST_MARK.finditer(text)]
    if len(counts) < 2 or any(after - before != 1 for before, after in pairwise(counts)):
        return text
    return LIST_MARK.sub(_blank, text)


def _mentions(text: str, low: float, high: float, aspect: str) -> Iterator[Mention]:
    label = words.label_pattern(aspect)
    for number in list(NUMBER.finditer(text))[-MOST_NUMBERS:]:
        before = text[max(0, number.start() - NEAR) : number.start()]
        after = text[number.end() : number.end() + NEAR]
        if words.RANGE_BEFORE.search(before) and not words.BETWEEN.search(before):
            continue  # the second of two, which the first one stands for
        value, problem, rest = _value(number.group(), before, after, low, high)
        is_given = words.GIVEN_AFTER.match(after) is not None
        is_closed = problem == "ambiguous" or is_given or words.END.match(rest) is not None
        is_level = words.LEVEL_END.match(rest) is not None
        label_before = _labeled(label, before, aspect)
        is_alone = _stands_alone(text, number)
        is_fraction = rest != after and problem is None
        if label_before is None and (
            is_given or (is_fraction and (is_alone or words.HEDGE.search(before)))
        ):
            label_before = Mention(is_labeled=True)
        mention = Mention(number.start(), value, problem)
        if label_before is not None:
            if _is_denied(before):
                continue
            if is_closed and not _begins_list(before, after):
                yield label_before._replace(start=number.start(), value=value, problem=problem)
            elif is_closed or is_level:
                yield mention
        elif (is_closed or is_level) and is_alone:
            yield mention._replace(is_labeled=words.CORRECTION.search(before) is not None)


def _value(
    number: str, before: str, after: str, low: float, high: float
) -> tuple[float, Problem | None, str]:
    """The number, its problem if any, and the text after the number and its scale."""
    fraction = words.FRACTION.match(after)
    text = number.replace("−", "-")
    if fraction and DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if not PLAIN.fullmatch(text) or words.RANGE_BEFORE.search(before):
        return 0.0, "ambiguous", after
    value = float(text)
    if (
        words.RANGE_AFTER.match(after)
        or words.OTHER_VALUE.match(after)
        or (not fraction and words.SERIES_AFTER.match(after))
    ):
        return value, "ambiguous", after
    if fraction:
        is_this = float(fraction["whole"]) == high
        rest = after[fraction.end() :]
        if words.RANGE_AFTER.match(rest) or words.OTHER_VALUE.match(rest):
            return value, "ambiguous", rest
        return value, None if is_this else "other_scale", rest
    if percent := words.PERCENT.match(after):
        is_this = (low, high) == (0, 100)
        return value, None if is_this else "other_scale", after[percent.end() :]
    return value, None, after


def _labeled(label: re.Pattern[str], before: str, aspect: str) -> Mention | None:
    """The label of a number, from the text before it; None without a label."""
    match = label.search(before)
    while match is not None and not _is_its_own(match, before, aspect):
        match = label.search(before, match.start() + 1)
    if match is None:
        return None
    is_aspect = _names_aspect(match)
    near = re.split(r"[.;:,!?\n]\s", before[: match.start()])[-1][-25:] + match.group()
    return Mention(
        is_labeled=True,
        is_aspect=is_aspect,
        is_final=words.FINAL.search(near) is not None,
        is_overall=not is_aspect and words.OVERALL.search(near) is not None,
    )


def _names_aspect(match: re.Match[str]) -> bool:
    return bool(match.groupdict().get("aspect") or match.groupdict().get("again"))


def _is_its_own(match: re.Match[str], before: str, aspect: str) -> bool:
    """Whether a label is of the number behind it, and not of another cell or aspect."""
    if "\n" in match["between"] and "|" in match["between"]:
        return False
    if not aspect or not match["noun"] or _names_aspect(match):
        return True
    lead = LEAD.search(before[: match.start()])
    return lead is None or lead.group(1).lower() in words.BEFORE_NOUNS


def _is_denied(before: str) -> bool:
    """Whether the clause before a number says that it is not, or not yet, the score."""
    clause = re.split(r"[:=]", CLAUSE.split(before)[-1])[0].replace("_", " ")
    sentence = re.split(r"[.!?]\s|\n", before)[-1]
    patterns = (words.SUPPOSED, words.OTHERS)
    return bool(words.NOT_MEANT.search(clause) or any(one.search(sentence) for one in patterns))


def _begins_list(before: str, after: str) -> bool:
    is_first = re.search(r"(?:\A|\n)[\s*_>-]*$", before) is not None
    return bool(re.match(r"\)\s+\S", after) and "(" not in before[-3:]) or (
        is_first and re.match(r"\.\s+\S", after) is not None
    )


def _stands_alone(text: str, number: re.Match[str]) -> bool:
    """Whether a number without a label is by itself, and not in the flow of a sentence."""
    near = text[max(0, number.start() - NEAR) : number.end() + NEAR]
    line_start = max(text.rfind("\n", 0, number.start()) + 1, number.start() - NEAR)
    line = near[near.rfind("\n", 0, min(NEAR, number.start())) + 1 :].partition("\n")[0]
    if line.strip(MARKUP + "-–—•") == number.group().strip(MARKUP):
        return True
    before = text[line_start : number.start()]
    opened = before.rstrip(MARKUP[:-2])
    opener = before[len(opened) :]
    if words.BETWEEN.search(before) or (not opened and "|" not in opener):
        return True
    if re.search(r"\bno\.$", opened, re.I):
        return False
    if "(" in opener:
        return words.REFERENCES.search(opened) is None
    return bool(opener and re.search(r"[.!?;,…]$|(?:\s|\A)[-–—•]$", opened)) or bool(
        re.search(r"[。，]$", opened) or words.CONCLUSION.search(before)
    )


def _chosen(mentions: list[Mention]) -> Found:
    """The score that all mentions agree on; the aspect's mentions and final ones go first."""
    if any(one.is_aspect for one in mentions):
        mentions = [one for one in mentions if not one.is_overall]
        last = [one for one in mentions if one.is_aspect and one.is_final]
    else:
        last = [one for one in mentions if one.is_final]
    mentions = last or mentions
    if not mentions:
        return Found(problem="no_score")
    first = mentions[-1]
    if len({(one.value, one.problem) for one in mentions}) > 1:
        return Found(problem="ambiguous")
    return Found(problem=first.problem) if first.problem else Found(first.value, first.start)
