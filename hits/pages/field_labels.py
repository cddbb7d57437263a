"""Where a fault of a protocol is, in the words of its form: a fold's title and a field's label."""

from django.utils.translation import gettext as _, gettext_lazy
from django_stubs_ext import StrPromise

from annotation.protocols.faults import Fault, FaultPath

Labels = dict[str, StrPromise]

QUESTION: Labels = {
    "wording": gettext_lazy("Question"),
    "name": gettext_lazy("Column name in exports"),
    "title": gettext_lazy("Heading"),
    "kind": gettext_lazy("Answered by"),
    "about": gettext_lazy("Ask about"),
    "low_label": gettext_lazy("Label at the left end"),
    "middle_label": gettext_lazy("Label in the middle"),
    "high_label": gettext_lazy("Label at the right end"),
    "minimum": gettext_lazy("Minimum"),
    "maximum": gettext_lazy("Maximum"),
    "unit": gettext_lazy("Unit"),
    "level": gettext_lazy("Level of measurement"),
    "first": gettext_lazy("Value of the first point"),
    "least": gettext_lazy("Minimum number of choices"),
    "most": gettext_lazy("Maximum number of choices"),
    "yes_label": gettext_lazy("Label of yes"),
    "no_label": gettext_lazy("Label of no"),
    "none_label": gettext_lazy("Label of none"),
    "tie_label": gettext_lazy("Label of a tie"),
    "least_length": gettext_lazy("Minimum characters"),
    "most_length": gettext_lazy("Maximum characters"),
    "points": gettext_lazy("Labels"),
    "categories": gettext_lazy("Categories, one per line"),
    "cannot_tell": gettext_lazy("Offer “I can’t tell” (stored as a missing value)"),
    "show_number": gettext_lazy("Show the number while answering (off is less biased)"),
    "ties": gettext_lazy("Allow ties"),
    "whole": gettext_lazy("Whole numbers only"),
    "required": gettext_lazy("Required"),
    "when-question": gettext_lazy("Ask only if"),
    "when-any_of": gettext_lazy("One of these answers"),
    "when-below": gettext_lazy("Less than"),
    "when-above": gettext_lazy("More than"),
    "check-value": gettext_lazy("Right answer"),
    "check-share": gettext_lazy("Percent of pages"),
    "check-tolerance": gettext_lazy("Allowed difference"),
    "check-holds_work": gettext_lazy("Hold failed work for review"),
}
EXAMPLE: Labels = {
    "verdict": gettext_lazy("Kind of example"),
    "context": gettext_lazy("Context"),
    "candidate": gettext_lazy("Response or product"),
    "explanation": gettext_lazy("Why"),
}
CHECK: Labels = {
    "kind": gettext_lazy("Extra response"),
    "share": gettext_lazy("Share of pages (%)"),
    "question": gettext_lazy("Question"),
    "tolerance": gettext_lazy("Allowed difference"),
    "holds_work": gettext_lazy("Hold failed work for review"),
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
    "pass_percent": gettext_lazy("Right answers to pass (%)"),
    "tolerance_percent": gettext_lazy("Allowed difference (% of the scale)"),
    "allowed_seconds": gettext_lazy("Time for the test (seconds)"),
    "retry_after_seconds": gettext_lazy("Retry after (seconds)"),
    "feedback": gettext_lazy("Show the right answers and their reasons afterwards"),
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
    "pass_percent": gettext_lazy("Right answers to pass (%)"),
    "tolerance_percent": gettext_lazy("Allowed difference (% of the scale)"),
    "attempts": gettext_lazy("Attempts"),
    "most_workers": gettext_lazy("Maximum annotators per HIT"),
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
        "title": gettext_lazy("Title for annotators"),
        "language": gettext_lazy("Language"),
        "direction": gettext_lazy("Text direction"),
        "instructions": gettext_lazy("Instructions (Markdown)"),
        "comment": gettext_lazy("Comment box for annotators"),
        "questions": gettext_lazy("Questions"),
        "examples": gettext_lazy("Instructions"),
        "checks": gettext_lazy("Checks"),
        "holding_flags": gettext_lazy("Hold work for review if it is flagged"),
    },
    "consent": {
        "statement": gettext_lazy("Consent statement"),
        "information": gettext_lazy("Information sheet (Markdown)"),
    },
    "display": {
        "context": gettext_lazy("Show the conversation or the target"),
        "reference": gettext_lazy("Show the reference answer"),
        "condition": gettext_lazy("Show the condition, such as the style"),
        "condition_label": gettext_lazy("Name of the condition"),
        "candidates": gettext_lazy("Name of the candidates"),
    },
    "order": {
        "policy": gettext_lazy("Order of the candidates"),
        "seed": gettext_lazy("Seed"),
    },
    "reason": {
        "rule": gettext_lazy("Reason"),
        "least_length": gettext_lazy("Minimum characters"),
        "wording": gettext_lazy("Question about the reason"),
    },
    "time": {
        "estimate_seconds": gettext_lazy("Time per HIT (seconds)"),
        "allowed_seconds": gettext_lazy("Time allowed (seconds)"),
    },
    "qualifications": {
        "countries": gettext_lazy("Countries"),
        "languages": gettext_lazy("Languages"),
        "least_approval_percent": gettext_lazy("Minimum approval rate (%)"),
        "least_approved_hits": gettext_lazy("Minimum approved HITs"),
        "most_hits_per_worker": gettext_lazy("Maximum HITs per annotator"),
        "hold_after_hits": gettext_lazy("Hold for review after this many HITs"),
        "excluded_studies": gettext_lazy("Exclude annotators of these studies"),
        "tests": gettext_lazy("Tests"),
    },
    "completion": {
        "assignments_per_item": gettext_lazy("Annotators per item"),
        "second_round_share": gettext_lazy("Second round (% of items)"),
    },
}
SECTIONS: Labels = {
    "consent": gettext_lazy("Consent"),
    "display": gettext_lazy("What is shown"),
    "order": gettext_lazy("What is shown"),
    "reason": gettext_lazy("Reason and comments"),
    "time": gettext_lazy("Time and pay"),
    "qualifications": gettext_lazy("Who can work"),
    "completion": gettext_lazy("Time and pay"),
}

# The folded sections of the page by the part of the document that each has; questions and checks
# are cards, and all else is about the annotators' page.
FOLDS = {
    "questions": "questions",
    "checks": "questions",
    "consent": "consent",
    "qualifications": "people",
    "holding_flags": "people",
    "time": "time",
    "completion": "time",
}


def section_of(path: FaultPath) -> str:
    return FOLDS.get(str(path[0]), "instructions") if path else "instructions"


def on_card(fault: Fault) -> str:
    """The fault of a question, on its card; the field is named unless the message is a sentence."""
    label = _question_label(list(fault.path[2:]))
    is_sentence = not label or fault.message[:1].isupper()
    return fault.message if is_sentence else f"“{label}” {fault.message}"


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
    if rest[:1] == ["check"]:
        return _label(QUESTION, [f"check-{rest[1] if rest[1:] else 'value'}"])
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
