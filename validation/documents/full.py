from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _, gettext_noop

from presentation.documents import (
    Column,
    Document,
    Figure,
    Number,
    P,
    Row,
    Section,
    Shortened,
    Table,
)
from validation.analysis.records import plain
from validation.documents.figures import (
    curve_figure,
    forest_figure,
    heat_map_figure,
    ranks_figure,
    scatter_figure,
    significance_figure,
)
from validation.documents.methods import methods_paragraph
from validation.documents.metric_tables import (
    ceilings_table,
    comparisons_table,
    correlations_table,
    coverage_table,
    curves_of,
    sample_size_table,
    sensitivity_table,
)
from validation.documents.metrics_answers import metrics_answers
from validation.documents.rated_systems import rated_systems_section, verdicts
from validation.documents.system_tables import (
    disagreements_table,
    estimated_means_section,
    systems_table,
    worst_table,
)
from validation.documents.terms import shared_rules, signed, statistic
from validation.results import KINDS, Results

# What a record of a kind is called in its number's signature.
SIGNED = {
    "correlations": "correlation",
    "comparisons": "comparison",
    "ceilings": "ceiling",
    "sensitivity": "sensitivity",
}


def full_report(results: Results, *, title: str, datasheet: Sequence[Section] = ()) -> Document:
    sections = [
        rated_systems_section(results),
        estimated_means_section(results),
        Section(_("Which metric agrees with human ratings"), _agreement(results)),
        Section(_("Which metrics differ"), _differences(results)),
        Section(_("How far a metric could go"), _tables([ceilings_table(results)])),
        Section(_("The systems"), _systems(results)),
        Section(_("Where metrics go wrong"), _tables([worst_table(results)])),
        Section(_("What other policies would give"), _tables([sensitivity_table(results)])),
        Section(_("How large a study would have to be"), _plans(results)),
        Section(_("All correlations"), _everything(results)),
        *datasheet,
    ]
    return signed_document(results, title, sections)


def signed_document(results: Results, title: str, sections: Sequence[Section]) -> Document:
    displayed = [section for section in sections if section.parts]
    methods = methods_paragraph(results.settings, results.all_inputs)
    rules = shared_rules(results.settings, results.fingerprint)
    tables = [part for section in displayed for part in section.parts if isinstance(part, Table)]
    return Document(
        title=title,
        sections=[
            *displayed,
            Section(_("Methods"), [methods]),
            Section(
                _("Signatures"), [_(SIGNATURES_ARE), scores_table(results), appendix(tables, rules)]
            ),
        ],
        records={
            name: [
                plain(row)
                | (
                    {"number_signature": signed(results, SIGNED[name], row)}
                    if name in SIGNED
                    else {}
                )
                for row in results.rows(kind)
            ]
            for name, kind in KINDS.items()
        },
        about={
            "study": results.study,
            "fingerprint": results.fingerprint,
            "settings": results.settings.content(),
            "inputs": plain(results.inputs),
            "methods": methods,
        },
        answer=" ".join(_answers(results)),
    )


def _answers(results: Results) -> Iterator[str]:
    for verdict in verdicts(results):
        yield f"{verdict.best} {verdict.chance}"
    for question, metrics in metrics_answers(results):
        yield _of_question(question, [metrics.answer])


def _of_question(question: str, sentences: Sequence[str]) -> str:
    return _("%(question)s: %(text)s") % {"question": question, "text": " ".join(sentences)}


# The pairs whose difference is least sure have their curves drawn; the table has all.
MOST_CURVES = 6
REST = "…"
SIGNATURE = Column(gettext_noop("Signature"), is_number=False)
SIGNATURES_ARE = gettext_noop(
    "Each number of the tables above, with what it was computed from and by which rules. Two "
    "numbers of the same signature are the same number."
)


def appendix(tables: Sequence[Table], rules: str = "") -> Table:
    rows: list[Row] = [
        (
            table.name,
            _row_name(row),
            (f"{column.group}, {column.title}" if column.group else column.title),
            cell.text,
            _short(cell.signature, rules),
        )
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if isinstance(cell, Number | P) and cell.signature
    ]
    titles = (_("Table"), _("Row"), _("Column"), _("Number"))
    return Table(
        name="signatures",
        caption=_("The signature of every number"),
        columns=[*(Column(title, is_number=False) for title in titles), SIGNATURE],
        rows=rows,
        note=_("%(sign)s stands for %(rules)s.") % {"sign": REST, "rules": rules} if rules else "",
        is_appendix=True,
    )


def _short(signature: str, rules: str) -> str | Shortened:
    if not rules or not signature.endswith(rules):
        return signature
    return Shortened(signature.removesuffix(rules) + REST, signature)


def _row_name(row: Row) -> str:
    names: list[str] = []
    for cell in row:
        if not isinstance(cell, str):
            break
        names.append(cell)
    return ", ".join(name for name in names if name)


def scores_table(results: Results) -> Table:
    return Table(
        name="score-sets",
        caption=_("The sets of scores"),
        columns=[
            Column(_("Metric"), is_number=False),
            SIGNATURE,
            Column(_("Scores")),
            Column(_("Undefined")),
            Column(_("Input"), is_number=False),
        ],
        rows=[
            (
                results.label(one),
                one.signature,
                one.n_scores,
                one.n_undefined + one.n_unparsed,
                one.digest[:12],
            )
            for one in results.inputs.score_sets
        ],
    )


def _agreement(results: Results) -> list[str | Table | Figure]:
    """The scatter shows the metric with the greatest value."""
    answers = dict(metrics_answers(results))
    parts: list[str | Table | Figure] = [
        _of_question(question, answer.sentences) for question, answer in answers.items()
    ]
    parts.append(heat_map_figure(results))
    for question in results.questions:
        parts.append(forest_figure(results, question))
        leaders = answers[question].best_records if question in answers else []
        for first in leaders[:1]:
            scatter = results.scatter(question, first.metric, first.signature)
            if scatter is not None:
                parts.append(scatter_figure(results, question, results.label(first), scatter))
    return parts


def _differences(results: Results) -> list[str | Table | Figure]:
    parts: list[str | Table | Figure] = []
    for question in results.questions:
        table = comparisons_table(results, question)
        if table.rows:
            parts += [significance_figure(results, question), table]
    return parts


def _systems(results: Results) -> list[str | Table | Figure]:
    parts: list[str | Table | Figure] = []
    for question in results.questions:
        table = systems_table(results, question)
        if table.rows:
            parts += [ranks_figure(results, question), table]
    return parts + _tables([disagreements_table(results)])


def _plans(results: Results) -> list[str | Table | Figure]:
    curves = curves_of(results)
    figures = [
        curve_figure(results, number, curve)
        for number, curve in enumerate(curves[:MOST_CURVES], start=1)
    ]
    return [*figures, *_tables([sample_size_table(results, curves)])]


def _everything(results: Results) -> list[str | Table | Figure]:
    sentence = _("Pictures and short tables show one of these measures: %(shown)s.") % {
        "shown": statistic(results.coefficient, results.level)
    }
    tables = [correlations_table(results, level) for level in results.levels]
    return [sentence, *_tables([*tables, coverage_table(results)])]


def _tables(tables: Sequence[Table]) -> list[str | Table | Figure]:
    return [table for table in tables if table.rows]
