from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.evidence import (
    BLUR,
    FAST_TYPING,
    HIDE,
    INPUT,
    MOSTLY_HIDDEN,
    NO_INPUT,
    PASTE,
    TYPING,
    UNSEEN,
    UNTYPED,
    Effort,
    measured_efforts,
    with_preceding,
)
from annotation.models import (
    AnnotatorFlag,
    CheckAnswer,
    Item,
    Judgment,
    Question,
    Study,
    Submission,
)
from annotation.protocols.records import QUESTION_CHECK
from console.templatetags.numbers import p_text
from hits.models import SharedDevice
from hits.questions import letter_at

SIMULATED, CONTRADICTORY, UNRECORDED = "simulated", "contradictory", "unrecorded"
UNUSUAL, CONSISTENT = "unusual", "consistent"
TITLES: dict[str, str | Promise] = {
    SIMULATED: gettext_lazy("Simulated: its times mean nothing"),
    CONTRADICTORY: gettext_lazy("The answer contradicts the measured times"),
    UNRECORDED: gettext_lazy("The page recorded nothing of the work"),
    UNUSUAL: gettext_lazy("Unusual"),
    CONSISTENT: gettext_lazy("The events of the page show nothing unusual"),
}
# Events that the time line of a submission marks.
MARKED = (INPUT, TYPING, PASTE)
# Where a line of 120 begins and ends, so that a dot at its end is whole.
LINE_START, LINE_LENGTH = 6, 108
# Dots of equal values are next to each other.
DOTS_APART = 6
SIGNS: dict[str, str | Promise] = {
    NO_INPUT: gettext_lazy("No key, mouse or touch was recorded."),
    UNTYPED: gettext_lazy("Less than half of the text was typed or pasted."),
    FAST_TYPING: gettext_lazy("It was typed faster than people type."),
    UNSEEN: gettext_lazy("Not all questions came into view."),
    MOSTLY_HIDDEN: gettext_lazy("The page was hidden most of the time."),
}


@dataclass(frozen=True)
class EffortNote:
    level: str
    signs: Sequence[str]
    facts: Sequence[str]
    timeline: dict[str, Any] | None = None

    @property
    def title(self) -> str:
        return str(TITLES[self.level])

    @property
    def is_bad(self) -> bool:
        return self.level in (CONTRADICTORY, UNUSUAL)


def effort_note(study: Study, submission: Submission) -> EffortNote:
    effort = measured_efforts(study, pk__in=with_preceding(submission))[submission.pk]
    signs = [] if effort.is_exempt else effort.signs
    return EffortNote(
        level=_level(effort, signs),
        signs=[str(SIGNS[sign]) for sign in signs],
        facts=[*_times(effort), *(_events(effort) if effort.events else [])],
        timeline=_timeline(effort),
    )


def _timeline(effort: Effort) -> dict[str, Any] | None:
    """Positions of events on a line of 120 that begins when the page is accepted."""
    seconds = effort.total_seconds or effort.reported_seconds
    if not seconds or not effort.events:
        return None

    def x(at: float) -> float:
        return round(LINE_START + LINE_LENGTH * min(at / seconds, 1), 1)

    return {
        "seconds": seconds,
        "marks": [(event[1], x(event[0])) for event in effort.events if event[1] in MARKED],
        "hidden": [(x(since), round(x(to) - x(since), 1)) for since, to in effort.hidden_spans],
    }


def _level(effort: Effort, signs: Sequence[str]) -> str:
    if effort.is_exempt:
        return SIMULATED
    if effort.is_contradictory:
        return CONTRADICTORY
    if not effort.events:
        return UNRECORDED
    return UNUSUAL if signs else CONSISTENT


def _times(effort: Effort) -> list[str]:
    facts = []
    total, server, active = effort.total_seconds, effort.server_seconds, effort.active_seconds
    if total is not None:
        facts.append(_("{s} s from accepting to submitting").format(s=_number(total)))
    if server is not None and total is not None and server < total:
        facts.append(_("{s} s since they submitted another page").format(s=_number(server)))
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
        facts.append(
            _("typing: {median} ms between characters (interquartile range {range} ms)").format(
                median=typing[0], range=typing[1]
            )
        )
    n_hidden, n_left = effort.counts[HIDE], effort.counts[BLUR]
    hidden = ngettext("page hidden {n} time, {s} s", "page hidden {n} times, {s} s", n_hidden)
    facts.append(hidden.format(n=n_hidden, s=_number(effort.hidden_seconds)))
    facts.append(ngettext("focus lost {n} time", "focus lost {n} times", n_left).format(n=n_left))
    if seen is not None:
        facts.append(_("{seen} of {all} questions in view").format(seen=seen[0], all=seen[1]))
    return facts


def _number(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"


# Of assignments, what these notes are made of.
NOTED = (
    Prefetch("submission__check_answers", CheckAnswer.objects.select_related("placed")),
    Prefetch("submission__annotator__quality_flags", AnnotatorFlag.objects.select_related("other")),
)
# By batch and worker.
Devices = dict[tuple[int, int], SharedDevice]


@dataclass(frozen=True)
class FlagNote:
    # `annotators` are the pseudonyms of others whom it is about.

    short: str
    title: str
    text: str
    holds_back: bool = True
    annotators: Sequence[str] = ()


def check_note(answer: CheckAnswer) -> FlagNote:
    placed = answer.placed
    title = {
        "gold": _("Failed a check with a known answer"),
        "repeat": _("Answered the same thing twice differently"),
        "degraded": _("Did not rate a spoilt response lower"),
        "instructed": _("Did not do what a response said"),
        "known_alternative": _("Refused a known alternative"),
        "known_other": _("Took what is not an alternative"),
        QUESTION_CHECK: _("Failed an attention check"),
    }.get(placed.kind, placed.kind)
    if answer.compared_value is not None:
        text = _("{value} beside {other}.").format(
            value=f"{answer.value:g}", other=f"{answer.compared_value:g}"
        )
    else:
        text = _("{value}; right is {expected}, give or take {tolerance}.").format(
            value=f"{answer.value:g}",
            expected=f"{placed.expected or 0:g}",
            tolerance=f"{placed.tolerance:g}",
        )
    return FlagNote(_("failed a check"), title, text)


def measured_note(submission: Submission) -> str:
    evidence = getattr(submission, "evidence", None)
    if evidence is None:
        return _("It was not measured yet.")
    parts = [
        (evidence.seconds, _("its time")),
        (evidence.same_share, _("how alike its ratings are")),
        (evidence.distance, _("how far its ratings are from others’")),
        (submission.justification or None, _("whether its reason was pasted")),
    ]
    measured = [words for value, words in parts if value is not None]
    text = _("Nothing speaks against it in what was measured: {what}.")
    if not measured:
        text = _("There was nothing to measure.")
    n = len(submission.check_answers.all())
    checks = _("It had no quality check.")
    if n:
        checks = ngettext("Its quality check was passed.", "Its {n} quality checks were passed.", n)
    return f"{text.format(what=', '.join(measured))} {checks.format(n=n)}"


def devices_of(study: Study) -> Devices:
    return {
        (row.batch_id, row.worker_id): row
        for row in SharedDevice.objects.filter(batch__study=study)
    }


def device_note(row: SharedDevice) -> FlagNote:
    title = ngettext(
        "{k} of {n} submissions came from a device of {others} other annotator too",
        "{k} of {n} submissions came from a device of {others} other annotators too",
        row.n_others,
    ).format(k=row.n_shared, n=row.n, others=row.n_others)
    parts = []
    if row.others:
        parts.append(
            ngettext(
                "In batch {batch} the other is annotator {names}.",
                "In batch {batch} the others are annotators {names}.",
                len(row.others),
            ).format(batch=row.batch_id, names=", ".join(row.others))
        )
    parts.append(_("People who share a network and a kind of browser look the same."))
    parts.append(_("It holds no work back."))
    return FlagNote(
        _("same device"), title, " ".join(parts), holds_back=False, annotators=row.others
    )


def annotator_note(flag: AnnotatorFlag) -> FlagNote:
    short, sentence = {
        "failed_checks": (_("failed checks"), _("{k} of {n} checks failed")),
        "straight_lines": (_("straight lines"), _("{k} of {n} pages with one and the same rating")),
        "too_fast": (_("too fast to read"), _("{k} of {n} pages faster than their words are read")),
        "copied_reasons": (_("copied reasons"), _("{k} of {n} reasons copied")),
        "machine_like": (_("machine-like reasons"), _("{k} of {n} reasons read like a machine’s")),
        "colluding": (_("like another annotator"), _("{k} of {n} ratings as another annotator’s")),
        "late_change": (_("changed later"), _("The last {k} of {n} pages are far from others’")),
        "unrelated": (
            _("unrelated to others"),
            _("{n} answers agree with others’ no better than random ones"),
        ),
        "position": (
            _("answers by position"),
            _("{k} of {n} pages have their highest answer at the same position"),
        ),
        "contradictory_times": (
            _("contradictory times"),
            _("{k} of {n} answers contradict the measured times"),
        ),
    }[flag.name]
    title = _("Annotator: {what}").format(what=sentence.format(k=flag.n_hits, n=flag.n))
    parts = []
    if flag.other is not None:
        parts.append(_("The other is {who}.").format(who=flag.other.pseudonym))
    if flag.name == "unrelated":
        parts.append(
            _("Correlation with the others: {own}. Typical of the others: {others}.").format(
                own=f"{flag.value or 0:.2f}", others=f"{flag.expected or 0:.2f}"
            )
        )
    elif flag.name == "position":
        parts.append(
            _("Expected if positions did not matter: {n}.").format(n=f"{flag.expected or 0:.1f}")
        )
    elif flag.expected is not None:
        parts.append(_("Expected by others: {n}.").format(n=f"{flag.expected:.1f}"))
    chance = _("Probability for an annotator like the others: p {p}.")
    if flag.name == "position":
        chance = _("Probability by chance: p {p}.")
    parts.append(chance.format(p=p_text(flag.p_value)))
    return FlagNote(short, title, " ".join(parts))


def rated_candidates(submission: Submission, item: Item) -> list[dict[str, Any]]:
    own_or_accepted = Q(submission=submission) | ~Q(submission__status=Submission.Status.REJECTED)
    judgments = (
        Judgment.objects.filter(
            own_or_accepted, submission__item=item.pk, submission__round=submission.round
        )
        .select_related("question")
        .order_by("question__position", "question", "pk")
    )
    mine: dict[tuple[int | None, int], Judgment] = {}
    others: dict[tuple[int | None, int], list[float]] = defaultdict(list)
    for one in judgments:
        if one.submission_id == submission.pk:
            mine[one.candidate_id, one.question_id] = one
        else:
            others[one.candidate_id, one.question_id].append(one.value)
    position = {key: number for number, key in enumerate(submission.shown_order)}
    return [
        {
            "letter": letter_at(number),
            "candidate": candidate,
            "strips": [
                _strip(judgment, sorted(others[pair]))
                for pair, judgment in mine.items()
                if pair[0] == candidate.pk
            ],
        }
        for number, candidate in enumerate(
            sorted(
                item.candidates.select_related("picture").defer("picture__content"),
                key=lambda one: (position.get(one.key, len(position)), one.position),
            )
        )
    ]


def _strip(judgment: Judgment, others: list[float]) -> dict[str, Any]:
    question = judgment.question
    return {
        "question": question,
        "value": _value(question, judgment.value),
        "dots": [
            *_dots(question, others),
            {"x": _x(question, judgment.value), "is_other": False},
        ],
        "others": ", ".join(_value(question, value) for value in others) or _("none yet"),
    }


def _dots(question: Question, values: list[float]) -> Iterator[dict[str, Any]]:
    for value, n in Counter(values).items():
        first = _x(question, value) - DOTS_APART * (n - 1) / 2
        yield from ({"x": first + DOTS_APART * place, "is_other": True} for place in range(n))


def _x(question: Question, value: float) -> float:
    share = (value - question.scale_min) / (question.scale_max - question.scale_min)
    return round(LINE_START + LINE_LENGTH * share, 1)


def _value(question: Question, value: float) -> str:
    if question.kind == "best_worst":
        return {1.0: _("best"), 0.0: _("worst")}.get(value, "–")
    if question.categories and 0 <= value < len(question.categories):
        return str(question.categories[int(value)])
    return f"{value:g}"
