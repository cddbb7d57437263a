"""Where a fault of a protocol is, in the words of its form: a fold's title and a field's label."""

from django.utils.translation import gettext as _, gettext_lazy
from django_stubs_ext import StrPromise

from annotation.protocols.faults import Fault, FaultPath

Labels = dict[str, StrPromise]

QUESTION: Labels = {
    "wording": gettext_lazy("Wording"),
    "name": gettext_lazy("Name"),
    "title": gettext_lazy("Heading"),
    "kind": gettext_lazy("Answered by"),
    "about": gettext_lazy("Asked about"),
    "low_label": gettext_lazy("Label at the left end"),
    "middle_label": gettext_lazy("Label in the middle"),
    "high_label": gettext_lazy("Label at the right end"),
    "minimum": gettext_lazy("Least value"),
    "maximum": gettext_lazy("Greatest value"),
    "unit": gettext_lazy("Unit"),
    "level": gettext_lazy("Level of measurement"),
    "first": gettext_lazy("Value of the first point"),
    "least": gettext_lazy("At least so many"),
    "most": gettext_lazy("At most so many"),
    "yes_label": gettext_lazy("Instead of Yes"),
    "no_label": gettext_lazy("Instead of No"),
    "none_label": gettext_lazy("Label of none"),
    "tie_label": gettext_lazy("Label of a tie"),
    "least_length": gettext_lazy("At least so many characters"),
    "most_length": gettext_lazy("At most so many characters"),
    "points": gettext_lazy("Labels of the points, low to high, one a line"),
    "categories": gettext_lazy("Categories, one a line"),
    "show_number": gettext_lazy("Show the number while answering (off is less biased)"),
    "ties": gettext_lazy("Candidates may be equally good"),
    "whole": gettext_lazy("Whole numbers only"),
    "required": gettext_lazy("Must be answered"),
    "when-question": gettext_lazy("Asked only on an answer to"),
    "when-any_of": gettext_lazy("One of these answers, one a line"),
    "when-below": gettext_lazy("Or less than"),
    "when-above": gettext_lazy("Or more than"),
    "check-value": gettext_lazy("Right answer"),
    "check-share": gettext_lazy("Share of pages, %"),
    "check-tolerance": gettext_lazy("An answer may be off by"),
    "check-holds_work": gettext_lazy("Work that fails it waits for a person"),
}
EXAMPLE: Labels = {
    "verdict": gettext_lazy("It is"),
    "context": gettext_lazy("Context"),
    "candidate": gettext_lazy("Response or product"),
    "explanation": gettext_lazy("Why"),
}
CHECK: Labels = {
    "kind": gettext_lazy("What is placed"),
    "share": gettext_lazy("On so many pages, %"),
    "question": gettext_lazy("Question"),
    "tolerance": gettext_lazy("An answer may be off by"),
    "holds_work": gettext_lazy("Work that fails it waits for a person"),
}
CHECK_CASE: Labels = {
    "candidate": gettext_lazy("Text of the response"),
    "value": gettext_lazy("Right value"),
    "item": gettext_lazy("Only on the page of item"),
    "source_item": gettext_lazy("Or what is shown of item"),
    "source_candidate": gettext_lazy("and its candidate"),
}
TEST: Labels = {
    "title": gettext_lazy("Title"),
    "pass_percent": gettext_lazy("Right answers to pass, at least %"),
    "tolerance_percent": gettext_lazy("An answer may be off by, % of the scale"),
    "allowed_seconds": gettext_lazy("Seconds to take it"),
    "retry_after_seconds": gettext_lazy("Again after so many seconds"),
    "feedback": gettext_lazy("Workers read afterwards which answers were right, and why"),
}
TEST_CASE: Labels = {
    "context": gettext_lazy("Context"),
    "reference": gettext_lazy("Reference answer"),
    "candidate": gettext_lazy("Text of the response"),
    "explanation": gettext_lazy("Why"),
}
PRACTICE: Labels = {
    "title": gettext_lazy("Title, before the study's"),
    "reward_usd": gettext_lazy("Reward of each HIT, $"),
    "pass_percent": gettext_lazy("Right answers to pass, at least %"),
    "tolerance_percent": gettext_lazy("An answer may be off by, % of the scale"),
    "attempts": gettext_lazy("Attempts"),
    "most_workers": gettext_lazy("Workers of each HIT, at most"),
    "item": gettext_lazy("Key of an item of the study"),
    "context": gettext_lazy("Context"),
    "reference": gettext_lazy("Reference answer"),
    "condition": gettext_lazy("Condition"),
    "candidate": gettext_lazy("Key of the candidate"),
    "candidates": gettext_lazy("Text of the response"),
    "text": gettext_lazy("Text of the response"),
}
# By the part of the document, and of what has no part.
FIELDS: dict[str, Labels] = {
    "": {
        "title": gettext_lazy("Title"),
        "language": gettext_lazy("Language"),
        "direction": gettext_lazy("Written"),
        "instructions": gettext_lazy("Text (Markdown)"),
        "comment": gettext_lazy("A box for comments to the requester"),
        "questions": gettext_lazy("Questions"),
        "examples": gettext_lazy("Instructions"),
        "checks": gettext_lazy("Checks"),
        "holding_flags": gettext_lazy("What else holds work for a person"),
    },
    "consent": {
        "statement": gettext_lazy("What they agree to"),
        "information": gettext_lazy("Information sheet (Markdown)"),
    },
    "display": {
        "context": gettext_lazy("The dialogue, or the target"),
        "reference": gettext_lazy("The reference answer"),
        "condition": gettext_lazy("The condition, such as the style"),
        "condition_label": gettext_lazy("Name of the condition"),
        "candidates": gettext_lazy("The candidates are"),
    },
    "order": {
        "policy": gettext_lazy("Order of the candidates"),
        "seed": gettext_lazy("Seed"),
    },
    "reason": {
        "rule": gettext_lazy("Reason"),
        "least_length": gettext_lazy("At least so many characters"),
        "wording": gettext_lazy("What is asked"),
    },
    "time": {
        "estimate_seconds": gettext_lazy("Seconds a page takes"),
        "allowed_seconds": gettext_lazy("Seconds allowed"),
    },
    "qualifications": {
        "countries": gettext_lazy("Countries"),
        "languages": gettext_lazy("Languages"),
        "least_approval_percent": gettext_lazy("Approval rate, at least %"),
        "least_approved_hits": gettext_lazy("Approved HITs, at least"),
        "most_hits_per_worker": gettext_lazy("HITs a worker, at most"),
        "hold_after_hits": gettext_lazy("Hold each worker after so many HITs"),
        "excluded_studies": gettext_lazy("Not the workers of these studies"),
        "tests": gettext_lazy("Tests"),
    },
    "completion": {
        "assignments_per_item": gettext_lazy("Workers of each item"),
        "second_round_share": gettext_lazy("Second round, % of items"),
    },
}
SECTIONS: Labels = {
    "consent": gettext_lazy("Information and consent"),
    "display": gettext_lazy("What is shown"),
    "order": gettext_lazy("What is shown"),
    "reason": gettext_lazy("Reason and comment"),
    "time": gettext_lazy("Time and end"),
    "qualifications": gettext_lazy("Who may work"),
    "completion": gettext_lazy("Time and end"),
}


def in_words(fault: Fault) -> str:
    message = fault.message
    if fault.path[-1:] in (("share",), ("second_round_share",)):
        message = _("A share is from 0 to 100 %.")
    where = place_of(fault.path)
    return f"{where}: {message}" if where else message


def place_of(path: FaultPath) -> str:
    # For example: Question 1, “Label at the left end”.
    match path:
        case ("questions", int(index), *rest):
            return _joined(_("Question %(n)d") % {"n": index + 1}, _question_label(rest))
        case ("examples", int(index), "scores", name, *_rest):
            return _joined(_("Example %(n)d") % {"n": index + 1}, right_value_label(name))
        case ("examples", int(index), *rest):
            return _joined(_("Example %(n)d") % {"n": index + 1}, _label(EXAMPLE, rest))
        case ("checks", int(index), *rest):
            return _in_cases(_("Check %(n)d") % {"n": index + 1}, rest, CHECK, CHECK_CASE)
        case ("qualifications", "tests", int(index), *rest):
            return _in_cases(_("Test %(n)d") % {"n": index + 1}, rest, TEST, TEST_CASE)
        case ("qualifications", "practice", *rest):
            return _in_practice(rest)
        case (str(section), str(name), *_rest) if section in SECTIONS:
            return _joined(str(SECTIONS[section]), _label(FIELDS[section], [name]))
        case (str(name), *_rest):
            return _joined("", _label(FIELDS[""], [name]))
    return ""


def _in_practice(rest: list[str | int]) -> str:
    # For example: Practice, page 1, response 2, Right value of fit.
    parts = [_("Practice")]
    match rest:
        case ["items", int(item), "candidates", int(candidate), *within]:
            parts += [_("page %(n)d") % {"n": item + 1}, _("response %(n)d") % {"n": candidate + 1}]
        case ["items", int(item), *within]:
            parts.append(_("page %(n)d") % {"n": item + 1})
        case within:
            pass
    match within:
        case ["scores", str(name), *_others]:
            parts.append(right_value_label(name))
        case ["feedback", str(name), *_others]:
            parts.append(_("Feedback on %(name)s") % {"name": name})
        case [str(name), *_others] if name != "items":
            parts.append(f"“{PRACTICE.get(name, name)}”")
    return ", ".join(parts)


def _in_cases(where: str, rest: list[str | int], own: Labels, of_cases: Labels) -> str:
    match rest:
        case ["cases", int(number), "scores", name, *_rest]:
            label = right_value_label(name)
        case ["cases", int(number), *within]:
            label = _label(of_cases, within)
        case _:
            return _joined(where, _label(own, rest))
    case_label = _("case %(n)d") % {"n": number + 1}
    return _joined(f"{where}, {case_label}", label)


def _question_label(rest: list[str | int]) -> str:
    if rest[:1] == ["when"]:
        return _label(QUESTION, [f"when-{rest[1] if rest[1:] else 'question'}"])
    return _label(QUESTION, rest)


def right_value_label(name: str | int) -> str:
    return _("Right value of %(name)s") % {"name": name}


def _label(labels: Labels, rest: list[str | int]) -> str:
    if not rest or rest[0] in ("cases", "scores"):
        return ""
    return str(labels.get(str(rest[0]), rest[0]))


def _joined(where: str, label: str) -> str:
    quoted = f"“{label}”" if label else ""
    return ", ".join(part for part in (where, quoted) if part)
