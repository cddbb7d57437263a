from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.models import Study
from annotation.protocols.records import ProtocolQuestion
from annotation.protocols.scales import range_of
from annotation.result_kinds.agreement import signed_alphas
from annotation.study_facts import (
    StudyFacts,
    SystemMean,
    raters_of,
    simulation_notice,
)
from presentation.documents import Column, Document, Number, Row, Section, Table, Verbatim
from results.models import Result
from validation.documents.full import appendix
from validation.documents.rated_systems import verdicts
from validation.study_report import ReportRequest
from validation.versions import StoredResults

SECONDS = "%Y-%m-%d %H:%M UTC"


def datasheet_document(study: Study, version: Result | None, *, with_money: bool) -> Document:
    """Roles that may not see money get no amounts."""
    facts = StudyFacts(study)
    sections = datasheet_sections(facts, with_money=with_money)
    tables = [part for section in sections for part in section.parts if isinstance(part, Table)]
    signatures = appendix(tables)
    if signatures.rows:
        sections.append(Section(_("Signatures"), [signatures]))
    return Document(
        title=_("Datasheet: %(study)s") % {"study": study.title or study.slug},
        sections=sections,
        about={"study": study.slug},
        answer=f"{simulation_notice(study)} {answer_of(facts, version)}".strip(),
    )


def whole_report(study: Study, number: int | None = None) -> ReportRequest:
    """The report for the study's team and readers of papers: with the datasheet, without prices and
    pay."""
    sections = datasheet_sections(StudyFacts(study), with_money=False)
    return ReportRequest(study, number=number, datasheet=sections)


def datasheet_sections(facts: StudyFacts, *, with_money: bool) -> list[Section]:
    return [
        Section(_("Results by system"), _results(facts)),
        Section(_("What annotators were asked"), _protocol_texts(facts)),
        Section(_("Who judged, and when"), [people_table(facts)]),
        Section(_("Pay"), pay_parts(facts, with_money=with_money)),
        Section(_("Agreement"), agreement_parts(facts)),
        Section(
            _("How these numbers were computed"),
            [
                _(
                    "Rejected submissions count nowhere; those flagged by hand, and those with a "
                    "flag that the review desk measured, count. A system's mean is the mean of all "
                    "judgments of its candidates in the first round. Krippendorff's alpha is of "
                    "the question's level of measurement, a candidate is a unit, and its interval "
                    "is a jackknife over items. judgments.csv holds all that these are computed "
                    "from."
                )
            ],
        ),
    ]


def answer_of(facts: StudyFacts, version: Result | None) -> str:
    """One sentence: the tests' conclusion if there are tests, otherwise the means."""
    if version is not None:
        results = verdicts(StoredResults(version, with_variants=False))
        if sentences := [f"{verdict.best} {verdict.chance}" for verdict in results]:
            return " ".join(sentences)
    if not facts.n_judgments:
        return _("Nobody has judged anything yet.")
    leaders: dict[str, SystemMean] = {}
    for row in facts.system_means:
        leaders.setdefault(row.question, row)
    if not leaders:
        n, n_annotators = facts.n_judgments, facts.counts["n_annotators"]
        return _("%(judgments)s by %(annotators)s; no systems are compared.") % {
            "judgments": ngettext("%(n)s judgment", "%(n)s judgments", n) % {"n": f"{n:,}"},
            "annotators": ngettext("%(n)s annotator", "%(n)s annotators", n_annotators)
            % {"n": f"{n_annotators:,}"},
        }
    text = _(
        "%(question)s: %(raters)s rate %(system)s highest, %(mean)s on average of %(n)s judgments; "
        "whether that could be chance has not been tested."
    )
    return " ".join(
        text % {"question": row.question, "system": row.system, "mean": f"{row.mean:.2f}",
                "n": f"{row.n_judgments:,}", "raters": raters_of(facts.study).named}
        for row in leaders.values()
    )  # fmt: skip


def _results(facts: StudyFacts) -> list[str | Table]:
    if not facts.system_means:
        return [_("No question rates systems that have names.")]
    basis = f"round:1|without:rejected|judgments_version:{facts.study.judgments_version}"
    rows: list[Row] = [
        (
            row.question,
            row.system,
            Number(
                row.mean,
                2,
                signature=f"mean|question:{row.question}|system:{row.system}|{basis}",
            ),
            row.n_judgments,
            row.n_annotators,
            row.n_items,
        )
        for row in facts.system_means
    ]
    columns = [
        Column(_("Question"), is_number=False),
        Column(_("System"), is_number=False),
        Column(_("Mean")),
        Column(_("Judgments")),
        Column(_("Annotators")),
        Column(_("Items")),
    ]
    return [Table("system-means", _("Mean of all judgments, by system"), columns, rows)]


def _protocol_texts(facts: StudyFacts) -> list[str | Table | Verbatim]:
    document, parts = facts.protocol, list[str | Table | Verbatim]()
    if facts.version is None:
        parts.append(_("No version of a protocol was published; this is what questions say."))
    else:
        number, date = facts.version.number, facts.version.frozen_at
        parts.append(
            _("Version %(number)s of the protocol, frozen %(date)s, fingerprint %(fingerprint)s.")
            % {
                "number": number,
                "date": f"{date:{SECONDS}}" if date else "",
                "fingerprint": facts.version.fingerprint[:12],
            }
        )
    rows: list[Row] = [
        (
            question.name,
            _kind(question),
            question.wording,
            "; ".join(_answers(question)),
        )
        for question in document.questions
    ]
    titles = (_("Question"), _("Kind"), _("Wording"), _("Answers"))
    columns = [Column(title, is_number=False) for title in titles]
    parts.append(Table("questions", _("The questions, verbatim"), columns, rows))
    if document.instructions:
        parts.append(Verbatim(_("Instructions, verbatim"), document.instructions))
    if document.consent is None and facts.version is not None:
        parts.append(_("No consent was asked."))
    if document.consent is not None:
        parts.append(Verbatim(_("Consent, verbatim"), document.consent.statement))
        if text := document.consent.information:
            parts.append(Verbatim(_("Information sheet, verbatim"), text))
    checks = ", ".join(f"{check.kind} ({check.share:.0%})" for check in document.all_checks)
    if checks:
        parts.append(_("Quality checks, by share of pages: %(checks)s.") % {"checks": checks})
    return parts


def _kind(question: ProtocolQuestion) -> str:
    title = str(question.options.title)
    mark = _("attention check")
    return title if question.check is None else f"{title} ({mark})"


def _answers(question: ProtocolQuestion) -> list[str]:
    labels = [*question.labels]
    if labels or question.options.is_comparison or question.options.is_text:
        return labels
    low, high = range_of(question)
    ends = (question.low_label, question.middle_label, question.high_label)
    return [f"{low:g}–{high:g}", *(end for end in ends if end)]


def people_table(facts: StudyFacts) -> Table:
    counts, dates = facts.counts, facts.dates
    unknown = _("not known")
    dropouts = facts.n_dropouts
    rows: list[Row] = [
        (_("First submission"), f"{dates[0]:{SECONDS}}" if dates else unknown),
        (_("Last submission"), f"{dates[1]:{SECONDS}}" if dates else unknown),
        (_("Annotators"), f"{counts['n_annotators']:,}"),
        (_("Items judged"), f"{counts['n_items']:,}"),
        (_("Submissions"), f"{counts['n_submissions']:,}"),
        (_("Submissions by simulated workers"), f"{counts['n_simulated']:,}"),
        (_("Submissions approved"), f"{counts['n_approved']:,}"),
        (_("Submissions rejected"), f"{counts['n_rejected']:,}"),
        (_("Submissions flagged by hand"), f"{counts['n_flagged']:,}"),
        (_("Submissions with a measured flag"), _n_measured_flags(counts) or unknown),
        (_("Submissions with consent"), f"{counts['n_consents']:,}"),
        (_("Assignments returned or abandoned"), unknown if dropouts is None else f"{dropouts:,}"),
        (_("Judgments, without rejected ones"), f"{facts.n_judgments:,}"),
        (_("Failed quality checks"), f"{facts.n_failed_checks:,}"),
    ]
    columns = [Column(_("What"), is_number=False), Column(_("How many"), is_number=True)]
    return Table("people", _("Annotators and submissions"), columns, rows)


def _n_measured_flags(counts: dict[str, Any]) -> str:
    n, n_measured = counts["n_flags_measured"], counts["n_measured"]
    if n_measured in (0, counts["n_submissions"]):
        return f"{n:,}" if n_measured else ""
    return _("%(n)s of %(total)s measured") % {"n": f"{n:,}", "total": f"{n_measured:,}"}


def pay_parts(facts: StudyFacts, *, with_money: bool) -> list[str | Table]:
    if not facts.batches:
        return [_("No batch was published from here, so no pay is known.")]
    if not with_money:
        return [_("Pay is left out: the datasheet has it, for roles that may see costs.")]
    parts: list[str | Table] = []
    if any(not batch.is_recruited for batch, _report in facts.batches):
        parts.append(_paid_here(facts))
    if facts.recruitments:
        parts.append(_paid_by_recruiters(facts))
    if any(batch.is_invited for batch, _report in facts.batches):
        parts.append(_("People who came by invitation links were not paid here."))
    return parts or [_("Nobody was paid: no participants were recruited.")]


def _paid_by_recruiters(facts: StudyFacts) -> Table:
    rows: list[Row] = []
    for one in facts.recruitments:
        charged = [
            Number(float(one.charges.get(kind, 0)), 2) for kind in ("reward", "bonus", "screen_out")
        ]
        hourly = Number(float(one.reward) * 60 / one.minutes, 2)
        sessions = one.sessions
        rows.append(
            (
                *(one.batch.title, one.recruiter.name, one.recruiter.currency),
                *(Number(float(one.reward), 2), one.items, one.minutes, hourly, one.places),
                *(one.outcomes.get("completed", 0), sessions.get("approved", 0)),
                *(sessions.get(name, 0) for name in ("rejected", "returned", "timed_out")),
                *charged,
            )
        )
    columns = [
        *(Column(title, is_number=False) for title in (_("Batch"), _("Recruiter"), _("Currency"))),
        *(Column(title) for title in (_("Reward"), _("Items"), _("Minutes"), _("An hour"))),
        *(Column(title) for title in (_("Places"), _("Completed"), _("Approved"), _("Rejected"))),
        *(Column(title) for title in (_("Returned"), _("Timed out"))),
        *(Column(title) for title in (_("Rewards"), _("Bonuses"), _("Screened out"))),
    ]
    note = _(
        "Of participants, whom their recruiter pays: the reward of one for all of their items, and "
        "what it comes to in an hour if they take the minutes that they were told. What rewards, "
        "bonuses and who was screened out cost is what the recruiter charged, fees included."
    )
    return Table("recruiters-pay", _("What recruiters paid"), columns, rows, note)


def _paid_here(facts: StudyFacts) -> Table:
    rows: list[Row] = []
    for batch, report in facts.batches:
        if batch.is_recruited:
            continue
        hourly = report.hourly_usd
        rows.append(
            (
                batch.title,
                str(batch.connection),
                Number(float(batch.reward_usd), 2),
                report.n_collected,
                report.n_approved,
                report.n_rejected,
                Number(float(report.spend.rewards_usd), 2),
                Number(float(report.spend.bonuses_usd), 2),
                Number(float(report.spend.fees_usd + report.spend.bonus_fees_usd), 2),
                Number(
                    hourly.median if hourly else None,
                    2,
                    hourly.first if hourly else None,
                    hourly.third if hourly else None,
                    reason=_("no time that may be a person's is known")
                    if report.n_implausible
                    else _("nobody's time is known"),
                ),
                report.n_implausible,
            )
        )
    columns = [
        Column(_("Batch"), is_number=False),
        Column(_("Marketplace"), is_number=False),
        Column(_("Reward, USD")),
        Column(_("Submitted")),
        Column(_("Approved")),
        Column(_("Rejected")),
        Column(_("Rewards, USD")),
        Column(_("Bonuses, USD")),
        Column(_("Fees, USD")),
        Column(_("USD an hour")),
        Column(_("Times left out")),
    ]
    note = _(
        "An hour's pay is the reward over the time from accepting to submitting: the median, with "
        "the middle half of submissions. Left out are simulated submissions, and times that are "
        "too short for a person."
    )
    return Table("pay", _("What was paid"), columns, rows, note)


def agreement_parts(facts: StudyFacts) -> list[str | Table]:
    if not signed_alphas(facts.study):
        return [_("Agreement has not been computed since the last change of judgments.")]
    rows: list[Row] = [
        (
            row["question"],
            row["round"],
            row["level"],
            Number(
                row["value"], 3, row["ci_low"], row["ci_high"],
                reason=str(row["reason"] or "").replace("_", " "),
                signature=row["signature"],
            ),
            row["n_items"],
            row["n_annotators"],
            row["n_labels"],
        )
        for row in signed_alphas(facts.study)
    ]  # fmt: skip
    columns = [
        Column(_("Question"), is_number=False),
        Column(_("Round")),
        Column(_("Level"), is_number=False),
        Column(_("Krippendorff's alpha")),
        Column(_("Units")),
        Column(_("Annotators")),
        Column(_("Judgments")),
    ]
    return [Table("agreement", _("Agreement of annotators"), columns, rows)]
