import csv
import gzip
import json
import re
from base64 import b64decode
from dataclasses import dataclass, fields, replace
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError
from django.template.loader import render_to_string
from django.utils.translation import gettext

from annotation.models import Submission
from annotation.protocols.fields import KINDS
from annotation.study_facts import SIMULATED, Raters, simulation_notice
from metrics import exceptions, study_scores
from metrics.scorers.registry import build
from presentation import writers
from presentation.documents import MOST_PRINTED, Column, Number, P, Table
from presentation.latex import document_latex, escape_breakable, escape_latex, table_latex
from presentation.writers import FORMATS, document_html
from results.models import Result
from tests.annotation import importing, studies
from tests.codes import codes_of, refused_naming
from tests.metrics.golden import golden_study
from tests.presentation.latex import compile_latex
from tests.validation.hostile import (
    CONDITIONS,
    METRICS,
    QUESTION,
    SETTINGS,
    SYSTEMS,
    hostile_content,
)
from tests.validation.test_study_validation import judged_study, score
from validation import heds, results, versions
from validation.analysis import Settings
from validation.analysis.records import ComparisonRecord, CorrelationRecord, SystemRecord
from validation.documents import full, layouts, terms
from validation.documents.methods import methods_paragraph, methods_sentences
from validation.result_kinds.validation import make_validation
from validation.study_report import ReportRequest, study_report_document

TITLE = f"Report of {QUESTION}"


@pytest.fixture(scope="module")
def content():
    return hostile_content()


@pytest.fixture(scope="module")
def document(content):
    return full.full_report(content, title=TITLE)


@pytest.fixture(scope="module")
def html(document):
    return document_html(document)


def methods_codes(settings, inputs):
    return codes_of(methods_sentences(settings, inputs))


def table(document, name):
    [match] = [table for table in document.tables if table.name == name]
    return match


def numbers(table):
    return [cell for row in table.rows for cell in row if isinstance(cell, Number | P)]


def parsed(html):
    return ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))


def words_of(element):
    return " ".join("".join(element.itertext()).split())


def test_every_correlation_is_in_the_report_in_its_own_cell(content, document):
    estimates = [
        number
        for level in content.levels
        for number in numbers(table(document, f"correlations-{level}"))
    ]
    records = content.rows(CorrelationRecord)
    assert sorted(n.value for n in estimates if n.value is not None) == sorted(
        row.value for row in records if row.value is not None
    )
    assert len(estimates) == len(records)
    chosen = {"question": "style", "scope": "condition", "by": CONDITIONS[1], "metric": "NLL_1"}
    [record] = content.rows(CorrelationRecord, **chosen, level="pooled", coefficient="spearman")
    correlations = table(document, "correlations-pooled")
    [row] = [row for row in correlations.rows if row[:3] == ("style", CONDITIONS[1], "NLL_1")]
    at = [column.title for column in correlations.columns].index("Spearman's ρ")
    low, high = record.ci_low, record.ci_high
    assert row[at].text == f"{record.value:.2f} [{low:.2f}, {high:.2f}]".replace("-0.00", "0.00")
    assert f"metric:{record.signature}|" in row[at].signature
    assert "|input:" + content.fingerprint[:12] in row[at].signature


def test_pictures_and_tests_of_pairs_are_those_of_the_reports_numbers(content, document):
    chosen = {"level": content.level, "coefficient": content.coefficient}
    chosen |= {"question": QUESTION, "scope": "all"}
    [figure] = [figure for figure in document.figures if figure.name == "forest-q1"]
    estimates = {
        row.metric: (row.value, row.ci_low, row.ci_high, row.attainable)
        for row in content.rows(CorrelationRecord, **chosen)
    }
    names = ("value", "ci_low", "ci_high", "ceiling")
    drawn_values = {row["metric"]: tuple(row[name] for name in names) for row in figure.rows}
    assert drawn_values == estimates
    drawn = max(figure.chart.to_dict()["datasets"].values(), key=len)
    assert {row["metric"]: row["value"] for row in drawn} == {
        metric: values[0] for metric, values in estimates.items()
    }
    comparisons = table(document, "comparisons-q1")
    records = content.rows(ComparisonRecord, **chosen)
    assert [tuple(cell.value for cell in row[2:]) for row in comparisons.rows] == [
        (
            *(row.delta, row.p, row.p_holm, row.p_bh),
            row.delta if row.new_systems_low is not None else None,
            row.new_systems_p_holm,
        )
        for row in records
    ]
    assert any(row.p_holm is not None for row in records)


def test_systems_and_policies_are_shown_beside_what_metrics_say_and_signed(content, document):
    systems = table(document, "systems-q1")
    assert {row[0] for row in systems.rows} == set(SYSTEMS)
    # Another table of the report gives the same means with other intervals and ranks.
    others = table(document, "rated-systems")
    assert others.caption in systems.note
    means = [row[1].value for row in systems.rows]
    assert means == sorted(means, reverse=True)
    assert [row[2].value for row in systems.rows] == [1, 2, 3, 4]
    assert [(title, size) for title, size in systems.groups if title] == [
        ("Human ratings", 2),
        *((metric, 2) for metric in METRICS),
    ]
    sensitivity = table(document, "sensitivity")
    shown = {row[2] for row in sensitivity.rows}
    assert {str(terms.POLICIES[name]) for name in ("ratings", "undefined", "aggregation")} <= shown
    key = ("style", "all", "Ratings", "Kendall's τ-b", "NLL_1")
    [row] = [row for row in sensitivity.rows if (*row[:3], *row[5:7]) == key]
    before, after = row[7:9]
    assert "|ratings:raw|" in before.signature
    assert "|ratings:zscore|" in after.signature
    correlations = numbers(table(document, "correlations-item"))
    assert before.signature in {number.signature for number in correlations}


@pytest.mark.slow
def test_an_undefined_number_is_a_dash_with_its_reason(document, html):
    correlations = table(document, "correlations-item")
    constant = [row for row in correlations.rows if row[2] == "constant"]
    assert {cell.text for row in constant for cell in row if isinstance(cell, Number)} == {"–"}
    reason = str(terms.REASONS["no_defined_item"])
    assert f"a: {reason}." in correlations.full_note
    assert f"a: {reason}" in html
    assert "–<sup>a</sup>" in html
    assert r"--\textsuperscript{a}" in table_latex(correlations)
    assert "– (a)" in writers.table_markdown(correlations)


OTHER = {
    **{"levels": ["item"], "coefficients": ["pearson"], "resample": "both", "undefined": "zero"},
    **{"unparsed": "zero", "ratings": "zscore", "judgments": "all", "aggregation": "median"},
    **{"round": 2, "confidence": 0.9, "n_resamples": 77, "test": "williams", "alpha": 0.01},
    **{"n_permutations": 88, "n_splits": 9, "n_worst": 4, "seed": 5, "primary": ["NLL_1"]},
    **{"questions_of": {"NLL": ["style"]}, "labels": [2], "planned": [["item", "kendall"]]},
    **{"cluster": "context", "protocol": 2},
}


def test_the_methods_name_every_setting(content):
    assert set(OTHER) == {field.name for field in fields(Settings)}
    for name, value in OTHER.items():
        # nothing is permuted but by a test that does so by name
        rules = content.settings
        rules = replace(rules, test="perm_items") if name == "n_permutations" else rules
        base = methods_paragraph(rules, content.inputs)
        changed = methods_paragraph(Settings.of(rules.content() | {name: value}), content.inputs)
        assert changed != base, f"the methods do not name {name}"


@dataclass(frozen=True, kw_only=True)
class Shrunken(Settings):
    shrinkage: float = 0.3


def test_the_methods_name_further_settings_and_say_on_what_a_report_rests(content, document):
    settings = Shrunken(**vars(content.settings))
    assert "further_settings" in methods_codes(settings, content.inputs)
    assert "shrinkage = 0.3" in methods_paragraph(settings, content.inputs)
    assert "further_settings" not in methods_codes(content.settings, content.inputs)
    sentences = {one.code: one for one in methods_sentences(content.settings, content.inputs)}
    assert document.about["methods"] == " ".join(sentences.values())
    assert re.findall(r"\d+", sentences["material"])[:5] == ["384", "384", "3", "64", "16"]
    assert "60" in re.findall(r"\d+", sentences["intervals"])
    assert re.findall(r"\d+", sentences["seed"]) == ["0"]
    assert "same_draws" in methods_codes(content.settings, content.inputs)
    drawn = replace(content.settings, resample="both", test="auto")
    assert "new_systems" in methods_codes(drawn, content.inputs)


def test_every_number_with_a_signature_is_in_the_appendix_of_each_form(document, content):
    appendix = table(document, "signatures")
    signed = [one for table in document.tables for one in numbers(table) if one.signature]
    assert len(appendix.rows) == len(signed) > 300
    whole = {one.signature for one in signed}
    assert {row["Signature"] for row in appendix.records()} == whole
    rules = appendix.note.removeprefix("… stands for ").removesuffix(".")
    shortened = [cells[-1].text for cells in appendix.cells if cells[-1].text.endswith("…")]
    assert shortened
    assert {text.removesuffix("…") + rules for text in shortened} <= whole
    text = FORMATS["csv"](document)["tables/signatures.csv"].decode()
    assert {row["Signature"] for row in csv.DictReader(StringIO(text))} == whole
    stored = json.loads(writers.document_json(document))["tables"]["signatures"]["rows"]
    assert {row["Signature"] for row in stored} == whole
    latex = FORMATS["latex"](document)
    assert r"\input{tables/signatures.tex}" in latex["report.tex"].decode()
    assert len(appendix.rows) > MOST_PRINTED
    papers = [
        (latex["tables/signatures.tex"].decode(), escape_breakable, escape_latex),
        (writers.document_markdown(document), writers.escape_markdown, writers.escape_markdown),
    ]
    for paper, of_cell, of_note in papers:
        texts = [of_cell(cells[-1].text) for cells in appendix.cells]
        assert [text for text in texts if text not in paper] == []
        assert of_note(appendix.note) in paper
    for level in content.levels:
        signatures = numbers(table(document, f"correlations-{level}"))
        assert len({number.signature for number in signatures}) == len(signatures)


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.addresses = []
        self.tags = set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        names = ("href", "src", "srcset", "data", "action", "style", "xlink:href")
        self.addresses += [value for name, value in attributes if name in names]


def test_the_html_is_well_formed_whole_and_loads_nothing(html, document):
    root = parsed(html)
    headings = [words_of(heading) for heading in root.iter("h2")]
    assert headings == [section.title for section in document.sections]
    assert len(list(root.iter("svg"))) == len(document.figures)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    descriptions = [e.get("aria-label") for e in root.iter("div") if e.get("role") == "img"]
    assert descriptions == [figure.words for figure in document.figures]
    downloads = [link.get("download") for link in root.iter("a") if link.get("download")]
    csvs = [name for name in downloads if name.endswith(".csv")]
    assert csvs == [f"{figure.name}.csv" for figure in document.figures]
    cells = {words_of(cell) for tag in ("td", "th") for cell in root.iter(tag)}
    assert {QUESTION, *SYSTEMS, *METRICS} <= cells
    assert words_of(next(root.iter("h1"))) == TITLE
    gradients = set(re.findall(r'\bid="([^"]+)"', html))
    used = re.findall(r"url\(#([^)]+)\)", html)
    assert used
    assert set(used) <= gradients
    links = [link for link in root.iter("a") if link.get("download", "").endswith(".gz")]
    long = [table for table in document.tables if not table.is_short]
    assert [link.get("download") for link in links] == [f"{one.name}.csv.gz" for one in long]
    assert "signatures" in [one.name for one in long]
    for link, one in zip(links, long, strict=True):
        content = gzip.decompress(b64decode(link.get("href").partition("base64,")[2])).decode()
        assert content == writers.table_csv(one)
    links = Links()
    links.feed(html)
    assert {link[:5] for link in links.addresses if not link.startswith("#")} == {"data:"}
    assert not re.search(r"""(url\(['"]?(?!#)|@import|https?://)""", html)
    assert links.tags.isdisjoint({"script", "link", "iframe", "object", "img"})


def test_markdown_shows_hostile_names_and_json_and_csv_hold_every_record(document, content):
    written = writers.document_markdown(document)
    assert "<script>" not in written.replace(r"\<script\>", "")
    assert r"a\_b \& \<script\> 100%" in written
    lines = [line for line in written.splitlines() if line.startswith("| ")]
    assert lines
    systems = table(document, "systems-q1")
    block = writers.table_markdown(systems).splitlines()
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block if line.startswith("| ")}
    assert widths == {len(systems.columns) + 1}
    content_of_file = json.loads(writers.document_json(document))
    assert content_of_file["settings"] == content.settings.content()
    assert content_of_file["fingerprint"] == content.fingerprint
    records = content.rows(CorrelationRecord)
    assert len(content_of_file["correlations"]) == len(records)
    signatures = [row["number_signature"] for row in content_of_file["correlations"]]
    assert len(set(signatures)) == len(signatures)
    assert {
        row["value"] for row in content_of_file["correlations"] if row["metric"] == "constant"
    } == {None}
    rows = list(csv.DictReader(StringIO(FORMATS["csv"](document)["correlations.csv"].decode())))
    assert [row["value"] for row in rows] == [
        "" if row.value is None else repr(row.value) for row in records
    ]
    assert {row["question"] for row in rows} == {QUESTION, "style"}


@pytest.mark.slow
def test_the_latex_compiles_with_its_pictures(document, tmp_path):
    pdf = compile_latex(document, tmp_path)
    assert pdf.startswith(b"%PDF-")
    log = (tmp_path / "report.log").read_text(errors="replace")
    assert int(re.search(r"Output written on report.pdf \((\d+) pages", log)[1]) > 3
    assert "undefined" not in log.lower().replace("undefined;", "")


def test_tables_of_lmstyle_and_g_eval_have_their_numbers_and_mark_the_greatest(content, document):
    latex = table_latex(layouts.lmstyle_correlations(content))
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\cmidrule(lr){3-4}"):
        assert rule in latex
    assert r"\multicolumn{2}{c}{In\{formal\}}" in latex
    assert r"a\_\allowbreak{}b \& \textless{}script\textgreater{} 100\%" in latex
    assert "|" not in latex.replace(r"\textbar", "")
    lmstyle = layouts.lmstyle_correlations(content)
    assert [(column.group, column.title) for column in lmstyle.columns[2:]] == [
        (name, symbol) for name in (*CONDITIONS, "Overall") for symbol in ("r", "τ")
    ]
    [row] = [row for row in lmstyle.rows if row[:2] == ("style", "NLL_1")]
    key = {"question": "style", "metric": "NLL_1", "level": "item"}
    expected = [
        100 * content.rows(CorrelationRecord, **key, by=by, scope=scope, coefficient=name)[0].value
        for by, scope in [*((by, "condition") for by in CONDITIONS), ("", "mean_of_conditions")]
        for name in ("pearson", "kendall")
    ]
    assert [cell.value for cell in row[2:]] == expected
    lmstyle = layouts.lmstyle_ratings(content)
    assert len(lmstyle.rows) == 2 * len(SYSTEMS)
    means = {(row.question, row.system, row.by): row.mean for row in content.rows(SystemRecord)}
    for row in lmstyle.rows:
        assert [cell.value for cell in row[2:]] == [
            means[row[0], row[1], by] for by in (*CONDITIONS, "")
        ]
    layout = layouts.g_eval(content, "pooled")
    assert [column.title for column in layout.columns[1:]] == ["r", "ρ", "τ"] * 3
    [row] = [row for row in layout.rows if row[0] == "NLL_1"]
    assert row[7].value == pytest.approx((row[1].value + row[4].value) / 2)
    [constant] = [row for row in layout.rows if row[0] == "constant"]
    assert {cell.text for cell in constant[1:]} == {"–"}
    rows = [("a", Number(0.1)), ("a", Number(0.3)), ("b", Number(0.2)), ("b", Number(None))]
    marked = [row[1].is_best for row in layouts.mark_best(rows, keys=1)]
    assert marked == [False, True, False, False]
    bold = Table("t", "t", [Column("k"), Column("v")], layouts.mark_best(rows, keys=1))
    assert "<b>0.30</b>" in render_to_string("presentation/_table.html", {"table": bold})
    assert r"\textbf{0.30}" in table_latex(bold)
    assert "**0.30**" in writers.table_markdown(bold)
    first = content.inputs.score_sets[0]
    inputs = replace(content.inputs, score_sets=(first, replace(first, signature="NLL_1|v:2")))
    labels = results.TableResults("s", replace(content.report, inputs=inputs)).labels
    assert list(labels.values()) == ["NLL_1 (1)", "NLL_1 (2)"]
    report = replace(content.report, systems=(), disagreements=(), comparisons=())
    tables = {t.name for t in full.full_report(results.TableResults("s", report), title="t").tables}
    gone = {t.name for t in document.tables} - tables
    assert gone >= {"systems-q1", "comparisons-q1"}
    assert {"correlations-item", "signatures"} <= tables


def test_planned_sample_sizes_are_drawn_and_tabled():
    settings = replace(SETTINGS, planned=(("item", "pearson"),), levels=("item",))
    document = full.full_report(hostile_content(settings), title="t")
    curves = [figure for figure in document.figures if figure.name.startswith("sample-size")]
    assert len(curves) == 6
    assert "NLL\\_1" in document_latex(document)
    planning = table(document, "planning")
    assert len(planning.rows) == 2 * 3 * 3
    assert planning.note


@pytest.mark.django_db
def test_the_command_writes_a_page_of_a_study(study, tmp_path):
    output = importing.command_output("report", "judged", output=tmp_path)
    assert f"{tmp_path}: report.html" in output
    root = parsed((tmp_path / "report.html").read_text())
    assert "report 1" in words_of(next(root.iter("h1")))
    names = [element.get("id") for element in root.iter("figure")]
    assert {"heat-map", "forest-q1", "scatter-q1", "ranks-q1"} <= set(names)


@pytest.mark.django_db
def test_the_command_writes_every_form_and_names_the_files(tmp_path):
    score(judged_study("moods", conditions=("calm", "angry")))
    answer = importing.command_output(
        "report", "moods", output=tmp_path, format=list(FORMATS), layout="lmstyle", json=True
    )
    files = {name.removeprefix(f"{tmp_path}/") for name in json.loads(answer)["files"]}
    assert {"report.html", "report.md", "report.tex", "report.json", "correlations.csv"} <= files
    assert {f"tables/lmstyle-{n}.tex" for n in (1, 2, 3)} <= files
    assert all((tmp_path / name).stat().st_size for name in files)


@pytest.fixture(scope="module")
def version(study):
    return make_validation(study=study).version


@pytest.mark.django_db
def test_a_report_on_simulated_answers_begins_with_that(study, version):
    people, workers = (str(one.named) for one in (Raters.PEOPLE, Raters.SIMULATED))
    answer = study_report_document(ReportRequest(study)).answer
    assert people in answer
    assert workers not in answer
    studies.make_simulated(study)
    document = study_report_document(ReportRequest(study))
    assert document.answer.startswith(simulation_notice(study))
    rest = document.answer.removeprefix(simulation_notice(study))
    assert workers in rest
    assert people not in rest
    assert all(gettext(SIMULATED) in part.caption for part in (*document.tables, *document.figures))


@pytest.mark.django_db
def test_a_stored_report_is_written_again_as_it_was_in_any_layout(study, version):
    document = study_report_document(ReportRequest(study), "g-eval")
    assert [table.name for table in document.tables[:2]] == ["g-eval-pooled", "g-eval-item"]
    assert [row[0] for row in table(document, "g-eval-item").rows] == ["m"]
    scatter = versions.StoredResults(version).scatter("appropriateness", "m", "m|v:1")
    [first] = [row for row in scatter.rows if (row["item"], row["system"]) == ("d0", "alpha")]
    assert (first["human"], first["score"]) == (20, 0.1)
    before = study_report_document(ReportRequest(study))
    Submission.objects.filter(annotator__pseudonym="Bob").update(status="rejected")
    again = study_report_document(ReportRequest(study, number=1))
    assert again.records == before.records
    assert [figure.rows for figure in again.figures] == [f.rows for f in before.figures]
    assert study_report_document(ReportRequest(study)).records != before.records
    with refused_naming(exceptions.ValidationUnknown, 9):
        study_report_document(ReportRequest(study, number=9))


@pytest.mark.django_db
def test_e2es_comparison_needs_no_judgments(tmp_path):
    study = golden_study()
    study_scores.score_study(study=study, scorer=build("rouge1"))
    document = study_report_document(ReportRequest(study), "e2e")
    layout = table(document, "e2e")
    assert [row[0] for row in layout.rows] == ["terse", "careful", "cheerful", "all systems"]
    first = [column.title for column in layout.columns[1:5]]
    assert first == ["standard", "enhanced", "difference", "p (Holm)"]
    for row in layout.rows:
        assert row[3].value == pytest.approx(row[2].value - row[1].value)
    assert "10,000" in document.about["methods"]
    with refused_naming(exceptions.NotPaired, "polite"):
        study_report_document(ReportRequest(study, prompts=("standard", "polite")), "e2e")


@pytest.mark.django_db
def test_a_folder_that_cannot_be_written_is_reported_before_anything_is_computed(tmp_path):
    score(judged_study("unwritten"))
    (tmp_path / "file").write_text("")
    with refused_naming(exceptions.ReportUnwritten, tmp_path / "file"):
        importing.command_output("report", "unwritten", output=tmp_path / "file")
    assert not Result.objects.filter(study__slug="unwritten").exists()
    with refused_naming(CommandError, "--format"):
        importing.command_output("report", "unwritten", "--format=docx", output=".")


def test_the_datasheet_describes_each_kind_of_question():
    assert set(heds.FORMS) == set(KINDS)
