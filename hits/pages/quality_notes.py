"""Failed checks and flags of an annotator in words, each with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import AnnotatorFlag, CheckAnswer, Study, Submission
from console.templatetags.numbers import p_text
from hits.models import Assignment, SharedDevice

# Of assignments, what these notes are made of.
NOTED = (
    Prefetch("submission__check_answers", CheckAnswer.objects.select_related("placed")),
    Prefetch("submission__annotator__quality_flags", AnnotatorFlag.objects.select_related("other")),
)
# By batch and worker.
Devices = dict[tuple[int, int], SharedDevice]


@dataclass(frozen=True)
class FlagNote:
    """A flag in words: its number, and what others did; whether it holds work back from the rule
    that approves what has none. `annotators` are others that it is about, by their pseudonyms."""

    short: str
    title: str
    text: str
    holds_back: bool = True
    annotators: Sequence[str] = ()


def check_notes(submission: Submission) -> list[FlagNote]:
    """The checks on this page that were failed."""
    return [_check_note(each) for each in submission.check_answers.all() if each.is_failed]


def _check_note(answer: CheckAnswer) -> FlagNote:
    placed = answer.placed
    title = {
        "gold": _("Failed a check with a known answer"),
        "repeat": _("Answered the same thing twice differently"),
        "degraded": _("Did not rate a spoilt response lower"),
        "instructed": _("Did not do what a response said"),
        "known_alternative": _("Refused a known alternative"),
        "known_other": _("Took what is not an alternative"),
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
    """What was measured of a submission without a flag: no flag says little where little was."""
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
    checks = ngettext("Its quality check was passed.", "Its {n} quality checks were passed.", n)
    if not n:
        checks = _("It had no quality check.")
    return f"{text.format(what=', '.join(measured))} {checks.format(n=n)}"


def devices_of(study: Study) -> Devices:
    """The devices of a study's workers that others share."""
    rows = SharedDevice.objects.filter(batch__study=study)
    return {(row.batch_id, row.worker_id): row for row in rows}


def device_notes(assignment: Assignment, devices: Devices) -> list[FlagNote]:
    """Whether its worker submitted from a device that others of the batch submitted from."""
    row = devices.get((assignment.hit.batch_id, assignment.worker_id))
    return [_device_note(row)] if row else []


def _device_note(row: SharedDevice) -> FlagNote:
    title = ngettext(
        "{k} of {n} submissions came from a device of {others} other worker too",
        "{k} of {n} submissions came from a device of {others} other workers too",
        row.n_others,
    ).format(k=row.n_shared, n=row.n, others=row.n_others)
    parts = []
    if row.others:
        text = ngettext(
            "In batch {batch} the other is annotator {names}, as this study calls the worker.",
            "In batch {batch} the others are annotators {names}, as this study calls the workers.",
            len(row.others),
        )
        parts.append(text.format(batch=row.batch_id, names=", ".join(row.others)))
    parts.append(_("People who share a network and a kind of browser look the same."))
    parts.append(_("It holds no work back."))
    return FlagNote(
        _("same device"), title, " ".join(parts), holds_back=False, annotators=row.others
    )


def annotator_notes(submission: Submission) -> list[FlagNote]:
    """What speaks against all work of its annotator."""
    return [_annotator_note(each) for each in submission.annotator.quality_flags.all()]


def _annotator_note(flag: AnnotatorFlag) -> FlagNote:
    short, sentence = {
        "failed_checks": (_("failed checks"), _("{k} of {n} checks failed")),
        "straight_lines": (_("straight lines"), _("{k} of {n} pages with one and the same rating")),
        "too_fast": (_("too fast to read"), _("{k} of {n} pages faster than their words are read")),
        "copied_reasons": (_("copied reasons"), _("{k} of {n} reasons copied")),
        "machine_like": (_("machine-like reasons"), _("{k} of {n} reasons read like a machine’s")),
        "colluding": (_("like another worker"), _("{k} of {n} ratings as another worker’s")),
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
    title = _("Worker: {what}").format(what=sentence.format(k=flag.n_hits, n=flag.n))
    parts = []
    if flag.other is not None:
        parts.append(_("The other is {who}.").format(who=flag.other.pseudonym))
    if flag.name == "unrelated":
        text = _("Correlation with the others: {own}. Typical of the others: {others}.")
        values = {"own": f"{flag.value or 0:.2f}", "others": f"{flag.expected or 0:.2f}"}
        parts.append(text.format(**values))
    elif flag.name == "position":
        text = _("Expected if positions did not matter: {n}.")
        parts.append(text.format(n=f"{flag.expected or 0:.1f}"))
    elif flag.expected is not None:
        parts.append(_("Expected by others: {n}.").format(n=f"{flag.expected:.1f}"))
    chance = _("Probability for an annotator like the others: p {p}.")
    if flag.name == "position":
        chance = _("Probability by chance: p {p}.")
    parts.append(chance.format(p=p_text(flag.p_value)))
    return FlagNote(short, title, " ".join(parts))
