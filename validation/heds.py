"""The Human Evaluation Datasheet of a study, as far as the database knows.

The questions are those of HEDS by number (Shimorina and Belz 2022,
https://aclanthology.org/2022.humeval-1.6), in fewer words; what nobody has said is marked.
"""

from collections.abc import Iterator, Mapping

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, gettext_noop

from annotation.models import Study
from annotation.protocols.records import ProtocolQuestion
from annotation.protocols.scales import range_of
from annotation.result_kinds.agreement import signed_alphas
from annotation.study_facts import StudyFacts, simulation_notice
from presentation.documents import Column, Document, Row, Section, Table, Verbatim
from presentation.writers import FORMATS
from results.models import Result
from validation.datasheet import answer_of, datasheet_document
from validation.result_kinds.validation import current_version

UNKNOWN = gettext_noop("to be filled in")
# Of kinds of questions: how the instrument is presented, and the form of elicitation.
SLIDER, OPTIONS, BOXES = (
    gettext_noop("Slider"),
    gettext_noop("Multiple-choice options"),
    gettext_noop("Check-boxes"),
)
DIRECT, CLASSES, RELATIVE, WORDS = (
    gettext_noop("Direct quality estimation"),
    gettext_noop("Output classification or labelling"),
    gettext_noop("Relative quality estimation (including ranking)"),
    gettext_noop("Qualitative feedback"),
)
FORMS = {
    "line": (SLIDER, DIRECT),
    "likert": (OPTIONS, DIRECT),
    "category": (OPTIONS, CLASSES),
    "categories": (BOXES, CLASSES),
    "yes_no": (OPTIONS, CLASSES),
    "number": (gettext_noop("Other: a number is typed"), DIRECT),
    "short_text": (gettext_noop("N/A (there is no rating instrument)"), WORDS),
    "long_text": (gettext_noop("N/A (there is no rating instrument)"), WORDS),
    "selection": (BOXES, CLASSES),
    "preference": (OPTIONS, RELATIVE),
    "best_worst": (OPTIONS, RELATIVE),
    "ranking": (gettext_noop("Other: candidates are put in order"), RELATIVE),
}
CONTINUOUS = gettext_noop("continuous")
# Number, question and answer; an open answer ends with UNKNOWN.
Filled = tuple[str, str, str]
# Title and name of each section.
Parts = list[tuple[str, str, list[Filled]]]


def heds_parts(facts: StudyFacts, *, is_tested: bool) -> Parts:
    """Without the answers of authors."""
    parts = [
        (_("Paper and resources"), "1", _paper()),
        (_("Systems"), "2", _systems()),
        (_("Output sample, evaluators, experimental design"), "3", _design(facts)),
    ]
    for question in facts.protocol.study_questions:
        title = _("Quality criterion: %(name)s") % {"name": question.name}
        parts.append((title, f"4-{question.name}", _criterion(facts, question, is_tested)))
    return [*parts, (_("Ethics"), "5", _ethics(facts))]


def fill_open(parts: Parts, answers: Mapping[str, str]) -> Parts:
    return [
        (
            title,
            name,
            [
                (number, question, text.removesuffix(_(UNKNOWN)) + answer)
                if is_open(text) and (answer := answers.get(f"{name}/{number}"))
                else (number, question, text)
                for number, question, text in rows
            ],
        )
        for title, name, rows in parts
    ]


def save_answers(*, study: Study, answers: Mapping[str, str]) -> None:
    """Other answers of the study stay; an empty text leaves its question open."""
    with transaction.atomic():
        locked = Study.objects.select_for_update().get(pk=study.pk)
        locked.datasheet_answers |= answers
        locked.save(update_fields=["datasheet_answers"])


def is_open(text: str) -> bool:
    return text.endswith(_(UNKNOWN))


def open_fields(parts: Parts) -> list[Filled]:
    return [row for *_name, rows in parts for row in rows if is_open(row[-1])]


def heds_document(study: Study, version: Result | None) -> Document:
    facts = StudyFacts(study)
    parts = heds_parts(facts, is_tested=version is not None)
    parts = fill_open(parts, study.datasheet_answers)
    sections = [
        Section(
            title,
            [
                _table(f"heds-{number + 1}", title, filled),
                *(_definition(facts) if name.startswith("4-") else ()),
            ],
        )
        for number, (title, name, filled) in enumerate(parts)
    ]
    return Document(
        title=_("Human Evaluation Datasheet: %(study)s") % {"study": study.title or study.slug},
        sections=[
            *sections,
            Section(
                _("About this datasheet"),
                [
                    _(
                        "The questions are those of HEDS by number (Shimorina and Belz 2022, "
                        "HumEval), in fewer words. %(open)s of %(all)s "
                        "answers are to be filled in by people."
                    )
                    % {
                        "open": len(open_fields(parts)),
                        "all": sum(len(rows) for *_name, rows in parts),
                    }
                ],
            ),
        ],
        about={"study": study.slug},
        answer=f"{simulation_notice(study)} {answer_of(facts, version)}".strip(),
    )


def _definition(facts: StudyFacts) -> Iterator[Verbatim]:
    if facts.protocol.instructions:
        yield Verbatim(_("4.3.2 Definition given to evaluators"), facts.protocol.instructions)


def _table(name: str, title: str, filled: list[Filled]) -> Table:
    rows: list[Row] = list(filled)
    titles = (_("No."), _("Question"), _("Answer"))
    return Table(name, title, [Column(one, is_number=False) for one in titles], rows)


def _paper() -> list[Filled]:
    return [
        ("1.1", _("Paper that reports the experiment"), _(UNKNOWN)),
        ("1.2", _("Website with the resources used"), _(UNKNOWN)),
        ("1.3", _("Who completes this sheet, and the contact author"), _(UNKNOWN)),
    ]


def _systems() -> list[Filled]:
    return [
        ("2.1", _("Type of input of the systems"), _(UNKNOWN)),
        ("2.2", _("Type of output of the systems"), _(UNKNOWN)),
        ("2.3", _("Task that the systems perform"), _(UNKNOWN)),
        ("2.4", _("Input languages"), _(UNKNOWN)),
        ("2.5", _("Output languages"), _(UNKNOWN)),
    ]


def _design(facts: StudyFacts) -> list[Filled]:
    outputs = "; ".join(
        _("%(system)s: %(n)s") % {"system": system or _("without a system"), "n": n}
        for system, n in facts.outputs_of_systems
    )
    is_online = bool(facts.batches)
    place = _("At a place of the evaluators' own choosing (online)") if is_online else _(UNKNOWN)
    return [
        ("3.1.1", _("Outputs evaluated per system"), outputs or "0"),
        ("3.1.2", _("How outputs were selected"), _(UNKNOWN)),
        ("3.1.3", _("Statistical power of the sample size"), _(UNKNOWN)),
        ("3.2.1", _("Number of evaluators"), str(facts.counts["n_annotators"])),
        ("3.2.2", _("Kind of evaluators"), _kind_of_evaluators(facts)),
        ("3.2.3", _("How evaluators were recruited"), _recruited(facts)),
        ("3.2.4", _("Training and practice before the evaluation"), _training(facts)),
        ("3.2.5", _("Other characteristics of evaluators"), _characteristics(facts)),
        ("3.3.1", _("Whether the design was preregistered, and where"), _(UNKNOWN)),
        ("3.3.2", _("How responses were collected"), _collected(facts)),
        ("3.3.3", _("Quality assurance"), _quality(facts)),
        ("3.3.4", _("What evaluators saw"), _interface(facts)),
        ("3.3.5", _("How free evaluators were in when and how fast"), _freedom(facts)),
        ("3.3.6", _("Whether evaluators could ask or give feedback"), _feedback(facts)),
        ("3.3.7", _("Conditions of the evaluation"), place),
        ("3.3.8", _("Range of those conditions"), "N/A" if is_online else _(UNKNOWN)),
    ]


def _kind_of_evaluators(facts: StudyFacts) -> str:
    if facts.counts["n_simulated"]:
        return simulation_notice(facts.study)
    if not facts.batches:
        return _(UNKNOWN)
    is_paid = any(
        batch.reward_usd > 0 or (batch.is_recruited and not batch.is_invited)
        for batch, _report in facts.batches
    )
    paid = _("paid") if is_paid else _("not paid")
    rest = _("experts or not, known to the authors or not:")
    return f"{paid}; {rest} {_(UNKNOWN)}"


def _recruited(facts: StudyFacts) -> str:
    if not facts.batches:
        return _(UNKNOWN)
    parts = []
    own = [batch for batch, _report in facts.batches if not batch.is_recruited]
    if names := ", ".join(dict.fromkeys(str(batch.connection) for batch in own)):
        parts.append(
            _("As workers of a marketplace that speaks the Mechanical Turk API: %(names)s.")
            % {"names": names}
        )
    if any(batch.is_invited for batch, _report in facts.batches):
        parts.append(_("By personal invitation links from the researchers, unpaid."))
    studies = facts.recruitments
    if names := ", ".join(dict.fromkeys(one.recruiter.name for one in studies)):
        parts.append(
            _("As participants of a recruiter, who finds, screens and pays them: %(names)s.")
            % {"names": names}
        )
    if filters := "; ".join(dict.fromkeys(line for one in studies for line in one.filters)):
        parts.append(_("Invited by: %(filters)s.") % {"filters": filters})
    return " ".join(parts) or _(UNKNOWN)


def _training(facts: StudyFacts) -> str:
    document = facts.protocol
    parts = [_("instructions (verbatim in the datasheet)")] if document.instructions else []
    if document.examples:
        parts.append(_("%(n)s scored examples") % {"n": len(document.examples)})
    for test in document.qualifications.tests:
        values = {"title": test.title, "n": len(test.cases), "pass": test.pass_percent}
        parts.append(_("%(title)s of %(n)s pages, passed at %(pass)s %%") % values)
    if (practice := document.qualifications.practice) is not None:
        parts.append(
            _("practice at up to %(n)s items with feedback, paid, passed at %(pass)s %%")
            % {"n": len(practice.items), "pass": practice.pass_percent}
        )
    return "; ".join(parts) or (_("none") if facts.version else _(UNKNOWN))


def _characteristics(facts: StudyFacts) -> str:
    rules, parts = facts.protocol.qualifications, list[str]()
    if rules.countries:
        parts.append(_("in these countries: %(names)s") % {"names": ", ".join(rules.countries)})
    if rules.languages:
        parts.append(
            _("say that they know these languages: %(names)s")
            % {"names": ", ".join(rules.languages)}
        )
    if rules.least_approval_percent is not None:
        parts.append(
            _("at least %(n)s %% of earlier work approved") % {"n": rules.least_approval_percent}
        )
    return "; ".join(parts) or _(UNKNOWN)


def _collected(facts: StudyFacts) -> str:
    online = _("On web pages made from the protocol, shown by the marketplace (Assay).")
    return online if facts.batches else _(UNKNOWN)


def _quality(facts: StudyFacts) -> str:
    parts = []
    if checks := facts.protocol.all_checks:
        kinds = ", ".join(dict.fromkeys(check.kind for check in checks))
        parts.append(
            _("automatic checks placed among the pages: %(kinds)s (%(n)s failed)")
            % {"kinds": kinds, "n": facts.n_failed_checks}
        )
    counts = facts.counts
    if counts["n_rejected"] or counts["n_flagged"]:
        parts.append(
            _(
                "manual review: %(rejected)s submissions rejected, which count nowhere, and "
                "%(flagged)s flagged by hand"
            )
            % {"rejected": counts["n_rejected"], "flagged": counts["n_flagged"]}
        )
    return "; ".join(parts) or _(UNKNOWN)


def _interface(facts: StudyFacts) -> str:
    display, n = facts.protocol.display, facts.most_candidates
    parts = [_("the context")] if display.context else []
    parts += [_("the reference")] if display.reference else []
    parts += [_("the condition")] if display.condition else []
    displayed = ", ".join(parts) or _("nothing of the item")
    if facts.version is None and not facts.batches:
        return _(UNKNOWN)
    return _(
        "A page an item with %(shown)s and up to %(n)s candidates without the systems' names, "
        "in the order '%(order)s', each with its questions."
    ) % {"shown": displayed, "n": n, "order": facts.protocol.order.policy}


def _freedom(facts: StudyFacts) -> str:
    own = [batch for batch, _report in facts.batches if not batch.is_recruited]
    parts = []
    if times := sorted({batch.assignment_duration_seconds for batch in own}):
        text = _(
            "Each page within a set time (%(times)s seconds); pages at times of one's own choice."
        )
        parts.append(text % {"times": ", ".join(f"{seconds:,}" for seconds in times)})
    for one in facts.recruitments:
        text = _(
            "Participants of %(name)s: %(items)s pages in one sitting, of about %(minutes)s "
            "minutes and not more than a little over twice as many."
        )
        values = {"name": one.recruiter.name, "items": one.items, "minutes": one.minutes}
        parts.append(text % values)
    return " ".join(dict.fromkeys(parts)) or _(UNKNOWN)


def _feedback(facts: StudyFacts) -> str:
    if facts.version is None and not facts.batches:
        return _(UNKNOWN)
    return (
        _("A box for comments on each page.") if facts.protocol.comment else _("No box for them.")
    )


def _criterion(facts: StudyFacts, question: ProtocolQuestion, is_tested: bool) -> list[Filled]:
    presented, form = FORMS[question.kind]
    is_text = question.options.is_text
    size, values = ("N/A", "N/A") if is_text else _scale(question)
    return [
        ("4.1.1", _("Type of quality: correctness, goodness or feature"), _(UNKNOWN)),
        ("4.1.2", _("Aspect: form, content or both"), _(UNKNOWN)),
        ("4.1.3", _("In its own right, or relative to something"), _(UNKNOWN)),
        ("4.2.1", _("Objective or subjective"), _(UNKNOWN)),
        ("4.2.2", _("Absolute or relative"), _absolute(facts)),
        ("4.2.3", _("Intrinsic or extrinsic"), _(UNKNOWN)),
        ("4.3.1", _("Name of the criterion, as evaluators read it"), question.heading),
        (
            "4.3.2",
            _("Definition given to evaluators"),
            (_("The instructions, below this table") if facts.protocol.instructions else "N/A"),
        ),
        ("4.3.3", _("Size of the scale"), size),
        ("4.3.4", _("Possible values"), values),
        ("4.3.5", _("How the instrument is presented"), _(presented)),
        ("4.3.6", _("Task, where there is no instrument"), question.wording if is_text else "N/A"),
        ("4.3.7", _("Verbatim question"), question.wording),
        ("4.3.8", _("Form of response elicitation"), _(form)),
        ("4.3.9", _("How responses were aggregated"), _aggregated(facts, question)),
        (
            "4.3.10",
            _("Methods for effect size and significance"),
            _(
                "Tests of every two systems for new items and new annotators, adjusted by Holm's "
                "method; the report has them."
            )
            if is_tested
            else _("None"),
        ),
        ("4.3.11", _("Agreement between and within evaluators"), _agreement(facts, question)),
    ]


def _absolute(facts: StudyFacts) -> str:
    n = facts.most_candidates
    if n > 1:
        return _("Relative: up to %(n)s candidates are shown together") % {"n": n}
    return _("Absolute: one candidate is shown at a time") if n else _(UNKNOWN)


def _scale(question: ProtocolQuestion) -> tuple[str, str]:
    labels = question.labels
    if not labels and question.kind in ("yes_no", "selection"):
        labels = (question.yes_label or _("yes"), question.no_label or _("no"))
    if labels:
        return str(len(labels)), "; ".join(labels)
    if question.options.is_comparison:
        return "N/A", _("order of the candidates shown")
    low, high = range_of(question)
    ends = " – ".join(end for end in (question.low_label, question.high_label) if end)
    # The page's line stops at whole numbers.
    size = f"{high - low + 1:g}" if question.kind == "line" or question.whole else _(CONTINUOUS)
    return size, f"{low:g}–{high:g}" + (f" ({ends})" if ends else "")


def _aggregated(facts: StudyFacts, question: ProtocolQuestion) -> str:
    return (
        _("The mean of all judgments of a system's candidates that were not rejected.")
        if any(row.question == question.name for row in facts.system_means)
        else _("No scores of systems are reported.")
    )


def _agreement(facts: StudyFacts, question: ProtocolQuestion) -> str:
    lines = []
    for row in signed_alphas(facts.study):
        if row["question"] != question.name and not row["question"].startswith(f"{question.name}:"):
            continue
        values = {"question": row["question"], "round": row["round"], "reason": row["reason"]}
        if row["value"] is None:
            text = _("%(question)s, round %(round)s: Krippendorff's alpha undefined (%(reason)s)")
        else:
            values |= {"value": f"{row['value']:.3f}"}
            text = _("%(question)s, round %(round)s: Krippendorff's alpha %(value)s")
            if row["ci_low"] is not None:
                values |= {"low": f"{row['ci_low']:.3f}", "high": f"{row['ci_high']:.3f}"}
                text += " [%(low)s, %(high)s]"
        lines.append(text % values)
    return "; ".join(lines) or _("Not computed since the last change of judgments")


def _ethics(facts: StudyFacts) -> list[Filled]:
    privacy = _("Annotators are stored under pseudonyms; whether texts hold personal data:")
    return [
        ("5.1", _("Approval by a research ethics committee"), _(UNKNOWN)),
        ("5.2", _("Personal data"), f"{privacy} {_(UNKNOWN)}"),
        ("5.3", _("Special categories of personal data"), _(UNKNOWN)),
        ("5.4", _("Impact assessments"), _(UNKNOWN)),
    ]


# In the order of a list of them, with what each holds.
DATASHEETS: Mapping[str, Promise] = {
    "datasheet.html": gettext_lazy(
        "Wording, instructions, consent, pay, dates, annotators, rejections, agreement and means."
    ),
    "datasheet.md": gettext_lazy("The same as Markdown."),
    "heds.html": gettext_lazy(
        "The Human Evaluation Datasheet (HEDS), filled as far as it is known here."
    ),
    "heds.md": gettext_lazy("The same as Markdown, to go on with."),
}


def datasheet_file(study: Study, name: str, *, with_money: bool) -> bytes:
    kind, _dot, form = name.partition(".")
    return FORMATS[form](_document(study, kind, with_money))[f"report.{form}"]


def _document(study: Study, kind: str, with_money: bool) -> Document:
    version = current_version(study)
    if kind == "heds":
        return heds_document(study, version)
    return datasheet_document(study, version, with_money=with_money)
