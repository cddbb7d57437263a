"""The effort behind one submission in words: its times, and what the work page recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.evidence import (
    BLUR,
    FAST_TYPING,
    HIDE,
    MOSTLY_HIDDEN,
    NO_INPUT,
    UNSEEN,
    UNTYPED,
    Effort,
    measured_efforts,
)
from annotation.models import Study, Submission

SIMULATED, CONTRADICTORY, UNRECORDED = "simulated", "contradictory", "unrecorded"
UNUSUAL, CONSISTENT = "unusual", "consistent"
TITLES: dict[str, str | Promise] = {
    SIMULATED: gettext_lazy("Simulated: its times mean nothing"),
    CONTRADICTORY: gettext_lazy("The answer contradicts the measured times"),
    UNRECORDED: gettext_lazy("The page recorded nothing of the work"),
    UNUSUAL: gettext_lazy("Unusual"),
    CONSISTENT: gettext_lazy("Nothing unusual was recorded"),
}
SIGNS: dict[str, str | Promise] = {
    NO_INPUT: gettext_lazy("No key, mouse or touch was recorded."),
    UNTYPED: gettext_lazy("Less than half of the text was typed or pasted."),
    FAST_TYPING: gettext_lazy("It was typed faster than people type."),
    UNSEEN: gettext_lazy("Not all questions came into view."),
    MOSTLY_HIDDEN: gettext_lazy("The page was hidden most of the time."),
}


@dataclass(frozen=True)
class EffortNote:
    """How a submission was worked on: one `level`, the signs that made it unusual, and facts."""

    level: str
    signs: Sequence[str]
    facts: Sequence[str]

    @property
    def title(self) -> str:
        return str(TITLES[self.level])

    @property
    def is_bad(self) -> bool:
        return self.level in (CONTRADICTORY, UNUSUAL)


def effort_note(study: Study, submission: Submission) -> EffortNote:
    """What a person should know of the effort behind a submission. It decides nothing."""
    # Its annotator's others say when the one before was submitted.
    efforts = measured_efforts(study, annotator=submission.annotator_id)
    effort = efforts[submission.pk]
    signs = [] if effort.is_exempt else effort.signs
    return EffortNote(
        level=_level(effort, signs),
        signs=[str(SIGNS[sign]) for sign in signs],
        facts=_facts(effort),
    )


def _level(effort: Effort, signs: Sequence[str]) -> str:
    if effort.is_exempt:
        return SIMULATED
    if effort.is_contradictory:
        return CONTRADICTORY
    if not effort.events:
        return UNRECORDED
    return UNUSUAL if signs else CONSISTENT


def _facts(effort: Effort) -> list[str]:
    return [*_times(effort), *(_events(effort) if effort.events else [])]


def _times(effort: Effort) -> list[str]:
    facts = []
    total, server, active = effort.total_seconds, effort.server_seconds, effort.active_seconds
    if total is not None:
        facts.append(_("{s} s from accepting to submitting").format(s=_number(total)))
    if server is not None and total is not None and server < total:
        text = _("{s} s since the worker submitted another page").format(s=_number(server))
        facts.append(text)
    if active is not None:
        facts.append(_("{s} s in sight, as the page reports").format(s=_number(active)))
    return facts


def _events(effort: Effort) -> list[str]:
    facts, first, typing, seen = [], effort.first_input_seconds, effort.typing_ms, effort.seen
    if first is not None:
        facts.append(_("first input after {s} s").format(s=_number(first)))
    facts.append(
        _("{typed} characters typed, {pasted} pasted").format(
            typed=effort.n_typed, pasted=effort.n_pasted
        )
    )
    if typing is not None:
        text = _("typing: {median} ms between characters (interquartile range {range} ms)")
        facts.append(text.format(median=typing[0], range=typing[1]))
    n_hidden, n_left = effort.counts[HIDE], effort.counts[BLUR]
    hidden = ngettext("page hidden {n} time, {s} s", "page hidden {n} times, {s} s", n_hidden)
    facts.append(hidden.format(n=n_hidden, s=_number(effort.hidden_seconds)))
    left = ngettext("focus lost {n} time", "focus lost {n} times", n_left)
    facts.append(left.format(n=n_left))
    if seen is not None:
        text = _("{seen} of {all} questions in view").format(seen=seen[0], all=seen[1])
        facts.append(text)
    return facts


def _number(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
