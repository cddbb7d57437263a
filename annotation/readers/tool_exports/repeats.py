"""What becomes of answers that one annotator gave to one question about one item more than once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from annotation.readers.policies import Repeats
from annotation.readers.tool_exports.entries import Answer, Entry, Export, place_of
from error_codes import CodedText

Repeated = list[tuple[Entry, Answer]]
NUMBERS = ("number", "points", "placed")


def settle_repeats(export: Export, passes: Iterable[list[Entry]]) -> None:
    """Leave one answer of those that an annotator repeated, or note them as faults."""
    policy = export.policies.repeats or "refuse"
    export.report.policies["repeats"] = policy
    for group in passes:
        found: dict[tuple[str, str], Repeated] = {}
        for entry in _in_order(group):
            for answer in entry.answers:
                found.setdefault((answer.candidate, answer.question), []).append((entry, answer))
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
        problem = (
            f"annotator '{entry.annotator}' answered '{answer.question}' about item "
            f"'{entry.item}' more than once{where}. Choose an answer with --repeats, or name the "
            "fields that tell items apart with --item."
        )
        raise entry.refuse(other, problem, code="repeated_answer")
    if policy == "mean":
        answer.value = _mean(repeated)
    kept = _kept(repeated, policy)
    for entry, answer in repeated:
        if answer is not kept:
            entry.answers = [one for one in entry.answers if one is not answer]
            text = "an annotator's further answers to one question about an item"
            reason = CodedText(f"{text} (--repeats {policy})", f"repeats_{policy}")
            export.leave_out(reason, entry.row, detail=answer.question)


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
            problem = (
                "--repeats mean needs numbers. For categories and words, choose first, last or "
                "majority."
            )
            raise entry.refuse(answer, problem, code="mean_of_categories") from None
    return sum(values) / len(values)
