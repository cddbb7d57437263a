"""What a paper prints of a study: tables, figures and the methods in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TypeVar, cast

from django.core.cache import cache
from django.utils.translation import get_language, gettext as _, ngettext

from annotation.models import Study
from annotation.protocols.records import ProtocolDocument
from annotation.study_facts import SIMULATED, StudyFacts, has_simulated, simulation_notice
from presentation.documents import (
    Cell,
    Column,
    Document,
    Figure,
    Number,
    Part,
    Row,
    Section,
    Table,
    name_letter,
)
from presentation.numbers import group_values, join_names
from presentation.writers import FORMATS
from stats.libraries import pd
from stats.significance.letters import significance_groups
from validation.analysis.human_results import ALL, PREFERRED, SHARE, QuestionRecord
from validation.analysis.rated_systems import LEAST_ITEMS
from validation.analysis.records import RatedPairRecord, RatedSystemRecord
from validation.charts.systems import rating_means
from validation.datasheet import agreement_parts, pay_parts, people_table
from validation.documents.figures import forest_figure
from validation.documents.methods import methods_paragraph
from validation.documents.metric_tables import SYSTEM, correlations_table
from validation.documents.rated_systems import is_told_apart
from validation.documents.terms import on_scale
from validation.result_kinds.validation import (
    StoredHumanResults,
    current_human_results,
    current_version,
)
from validation.versions import StoredResults

# The tables of the section on participants and pay.
OF_PARTICIPANTS = ("people", "pay", "recruiters-pay")
T = TypeVar("T")
Judged = tuple[QuestionRecord, list[RatedSystemRecord], list[RatedPairRecord]]


def paper_document(study: Study, *, with_money: bool) -> Document:
    """Results that are not computed are left out; `with_money` adds what was paid."""
    facts = StudyFacts(study)
    return Document(
        title=study.title or study.slug,
        sections=[*result_sections(facts), participants_section(facts, with_money=with_money)],
        about={"study": study.slug},
        answer=simulation_notice(study),
    )


def participants_section(facts: StudyFacts, *, with_money: bool) -> Section:
    people = kept_with_judgments("people", facts.study, lambda: people_table(facts))
    parts = [people, *pay_parts(facts, with_money=with_money)]
    return Section(_("Participants and pay"), parts)


def kept_with_judgments(name: str, study: Study, compute: Callable[[], T]) -> T:
    """To count a million submissions takes a second."""
    about = (study.pk, study.created_at.timestamp(), study.judgments_version, get_language())
    return cast("T", cache.get_or_set(f"{name}:{':'.join(map(str, about))}", compute))


def paper_files(document: Document, heds: Document) -> dict[str, bytes]:
    """`paper.tex`, which compiles by itself, with each table as LaTeX and CSV, and each figure as
    PDF and SVG; the datasheet in a folder of its own."""
    latex, pictures = FORMATS["latex"](document), FORMATS["md"](document)
    files = {"paper.tex": latex.pop("report.tex")} | latex | FORMATS["csv"](document)
    for form in ("md", "json", "latex"):
        own = FORMATS[form](heds)
        files |= {f"heds/{name.replace('report', 'heds')}": own[name] for name in own}
    return files | {name: pictures[name] for name in pictures if name.endswith(".svg")}


def result_sections(facts: StudyFacts) -> list[Section]:
    version, judged = current_version(facts.study), _judged(facts.study)
    metrics = None if version is None else StoredResults(version)
    methods = _methods(facts.protocol, judged, metrics)
    if methods and (notice := simulation_notice(facts.study)):
        # The notice is copied with the methods.
        methods.insert(0, notice)
    sections = [
        Section(_("Systems"), [*_systems(judged), *map(_figure, count(1), judged)]),
        Section(_("Agreement"), agreement_parts(facts)),
        Section(_("Metrics and human ratings"), _metrics(metrics)),
        Section(_("Methods"), methods),
    ]
    if has_simulated(facts.study):
        sections = [one.mark(_(SIMULATED), suffix="-simulated") for one in sections]
    return [section for section in sections if section.parts]


def _judged(study: Study) -> list[Judged]:
    """Questions on which named systems are compared."""
    version = current_human_results(study)
    if version is None:
        return []
    results = StoredHumanResults(study, version)
    parts = [(one, (one.question, ALL, "")) for one in results.questions]
    return [
        (one, results.systems[part], results.pairs.get(part, []))
        for one, part in parts
        if len(results.systems.get(part, ())) > 1
    ]


def _systems(judged: Sequence[Judged]) -> Iterator[Table]:
    if not judged:
        return
    names = list(dict.fromkeys(row.system for _one, systems, _pairs in judged for row in systems))
    columns, n_pairs = [SYSTEM], 0
    cells: dict[str, list[Cell]] = {name: [name] for name in names}
    for question, systems, pairs in judged:
        letters = letters_of(systems, pairs)
        n_pairs = max(n_pairs, len(pairs))
        rated = {row.system: row for row in systems}
        means = {row.system: row.mean for row in systems if row.mean is not None}
        best = max(means, key=means.__getitem__, default="")
        columns += [
            Column(_("share") if _is_share(question) else _("mean"), group=_title(question)),
            Column(_("letters"), group=_title(question), is_number=False),
        ]
        for name in names:
            number = _number(question, rated.get(name), is_best=name == best)
            cells[name] += [number, letters.get(name, "")]
    note = ngettext(
        "Means of all judgments with 95 %% intervals for new items and annotators; the greatest "
        "is bold. Systems that share a letter of a question do not differ significantly (p ≥ .05, "
        "Holm-adjusted for %(n)d comparison, or fewer than %(least)d items).",
        "Means of all judgments with 95 %% intervals for new items and annotators; the greatest "
        "is bold. Systems that share a letter of a question do not differ significantly (p ≥ .05, "
        "Holm-adjusted for %(n)d comparisons, or fewer than %(least)d items).",
        n_pairs,
    ) % {"n": n_pairs, "least": LEAST_ITEMS}
    rows: list[Row] = [tuple(cells[name]) for name in names]
    yield Table("systems", _("Human ratings of the systems"), columns, rows, note)


def letters_of(
    systems: Sequence[RatedSystemRecord], pairs: Sequence[RatedPairRecord]
) -> dict[str, str]:
    differing = [
        (pair.a, pair.b)
        for pair in pairs
        if is_told_apart(pair, pair.a) or is_told_apart(pair, pair.b)
    ]
    groups = significance_groups([one.system for one in systems], differing)
    letters = group_values(
        (name, name_letter(number)) for number, group in enumerate(groups) for name in group
    )
    return {name: "".join(own) for name, own in letters.items()}


def _title(question: QuestionRecord) -> str:
    if _is_share(question):
        return f"{question.question} (%)"
    return f"{question.question} ({question.scale_low:g}–{question.scale_high:g})"


def _is_share(question: QuestionRecord) -> bool:
    return question.measure in (SHARE, PREFERRED)


def _ends(question: QuestionRecord) -> tuple[float, float]:
    return (0.0, 1.0) if _is_share(question) else (question.scale_low, question.scale_high)


def _limits(question: QuestionRecord, row: RatedSystemRecord) -> list[float | None]:
    """The mean and its interval; shares in percent."""
    values = (row.mean, *on_scale(row.mean, (row.ci_low, row.ci_high), _ends(question)))
    factor = 100 if _is_share(question) else 1
    return [None if value is None else factor * value for value in values]


def _number(question: QuestionRecord, row: RatedSystemRecord | None, *, is_best: bool) -> Number:
    if row is None:
        return Number(None, reason=_("it has no judgment"))
    decimals = 1 if _is_share(question) else 2
    value, low, high = _limits(question, row)
    return Number(value, decimals, low, high, is_best=is_best, no_interval=_("too few ratings"))


def _figure(number: int, judged: Judged) -> Figure:
    question, systems, _pairs = judged
    names = ("value", "ci_low", "ci_high")
    rows = [
        {"system": row.system} | dict(zip(names, _limits(question, row), strict=True))
        for row in systems
    ]
    ends = (0.0, 100.0) if _is_share(question) else _ends(question)
    texts = [f"{row.system} {_number(question, row, is_best=False).text}" for row in systems]
    return Figure(
        name=f"systems-q{number}",
        caption=_("%(question)s: means of the systems with 95 %% intervals")
        % {"question": question.question},
        words=f"{'; '.join(texts)}.",
        draw=partial(rating_means, pd.DataFrame(rows), title=_title(question), ends=ends),
        rows=rows,
    )


def _metrics(metrics: StoredResults | None) -> list[Part]:
    if metrics is None or not metrics.measures:
        return []
    figures = [forest_figure(metrics, question) for question in metrics.questions]
    return [correlations_table(metrics, metrics.level, scope=ALL), *figures]


def _methods(
    protocol: ProtocolDocument, judged: Sequence[Judged], metrics: StoredResults | None
) -> list[Part]:
    parts: list[Part] = []
    for question, systems, _pairs in judged:
        parts.append(
            ngettext(
                "%(annotators)s annotator answered the question “%(wording)s” about %(items)s "
                "items with responses of %(systems)s systems (%(judgments)s judgments).",
                "%(annotators)s annotators answered the question “%(wording)s” about %(items)s "
                "items with responses of %(systems)s systems (%(judgments)s judgments).",
                question.n_annotators,
            )
            % {
                "annotators": f"{question.n_annotators:,}",
                "wording": _wording(protocol, question.question),
                "items": f"{question.n_items:,}",
                "systems": len(systems),
                "judgments": f"{question.n_judgments:,}",
            }
        )
    if checks := [f"{check.kind} ({check.share:.0%})" for check in protocol.all_checks]:
        text = _("Attention checks, by their share of the tasks: %(checks)s.")
        parts.append(text % {"checks": join_names(checks)})
    if judged:
        parts.append(
            _(
                "Rejected submissions are left out. Intervals of means and tests of differences "
                "are for new items and new annotators; p is two-sided and adjusted by Holm's "
                "method over the pairs of a question. Agreement is Krippendorff's alpha with a "
                "jackknife interval over items."
            )
        )
    if metrics is not None and metrics.measures:
        parts.append(methods_paragraph(metrics.settings, metrics.all_inputs))
    return parts


def _wording(protocol: ProtocolDocument, name: str) -> str:
    return next((one.wording for one in protocol.questions if one.name == name), "") or name
