import json
import re
from pathlib import Path

import pytest

from config.documentation import prepared, reference, rendered
from config.documentation.api_pages import api_pages
from config.documentation.markdown import as_rendered, repository_files
from metrics.scorers.registry import available
from tests.documentation.pages import DOCS, ROOT


def test_every_command_of_the_product_has_a_section_with_all_its_options():
    pages = "".join(reference.command_pages(ROOT).values())
    parsers = reference.command_parsers(ROOT)
    assert len(parsers) > 100
    assert {app for app, _parser in parsers.values()} <= reference.ABOUT.keys()
    for name, (app, parser) in parsers.items():
        if app in reference.ABOUT:
            assert f"## {name} {{ #{name} }}" in pages
            own = [action for action in parser._actions if action.option_strings[:1] == ["--json"]]
            assert len(own) <= 1
    [agreement] = re.findall(r"(?ms)^## agreement \{.*?(?=^## )", pages)
    for option in ("--item", "--annotator", "--value", "--level", "--where", "--cluster", "--ci"):
        assert f"`{option}" in agreement
    assert "python manage.py agreement FILE --level nominal" in agreement


def test_every_part_of_the_api_the_protocol_and_the_metrics_has_a_section():
    pages = api_pages(ROOT)
    records = pages["reference/api/records.md"]
    text = "".join(pages.values())
    for link in set(re.findall(r"\(records\.md#([\w-]+)\)", text)):
        assert f"{{ #{link} }}" in records
    assert text.count("    GET /api/v1/") > 50
    page = reference.protocol_page(ROOT)
    schema = json.loads((DOCS / "protocol.schema.json").read_text())
    for name in schema["$defs"]:
        assert f"## {name.replace('_', ' ').capitalize()}\n" in page
    assert page.count('??? example "') >= 9
    page = reference.metrics_page()
    for metric in available():
        assert metric.licence
        assert f"\n## {metric.name}\n" in page
    models = [metric for metric in available() if metric.size]
    assert {metric.name for metric in models} == {"bertscore", "embedding", "use", "style", "nll"}


def test_what_is_said_of_coverage_is_what_was_measured():
    rows = [json.loads(line) for line in prepared.ROWS.read_text().splitlines()]
    held = [
        row["first"]
        for row in rows
        if (row["part"], row["kind"], row["noted"]) == ("kappa", "interval", "")
    ]
    text = prepared.sentence(["kappa"], "coverage.md")
    assert "kappa of two annotators (`kappa`): " in text
    assert {row["part"] for row in rows} == set(prepared.SUBJECTS)
    assert f"{len(held)} settings hold the truth {min(held):.3f} to {max(held):.3f}" in text
    with pytest.raises(ValueError, match="must be of the coverage benchmark"):
        prepared.sentence(["nothing"], "coverage.md")
    page = prepared.with_coverage((DOCS / "statistics.md").read_text())
    assert "<!-- measured" not in page
    assert page.count("**Measured**") >= 7


def test_formulas_become_mathml_and_a_column_without_a_name_heads_its_rows():
    html = rendered.with_mathml('<span class="arithmatex">\\(a &lt; b\\)</span> for $0.25')
    assert "<math" in html
    assert "<mo>&#x0003C;</mo>" in html
    assert html.endswith(" for $0.25")
    rows = "<tbody><tr>\n<td><strong>a</strong></td>\n<td>1</td></tr></tbody></table>"
    unnamed = f"<table><thead><tr>\n<th></th>\n<th>x</th></tr></thead>{rows}"
    assert rendered.with_row_heads(unnamed).count('<th scope="row">') == 1
    assert '<th scope="row"><strong>a</strong></th>\n<td>1</td>' in rendered.with_row_heads(unnamed)
    named = unnamed.replace("<th></th>", "<th>y</th>")
    assert rendered.with_row_heads(named) == named


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example.org/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//fonts.example.org/x.css">', 1),
        ('<img src="tutorial/10-agreement.webp"><a href="https://example.org">there</a>', 0),
        ('<link rel="canonical" href="https://docs.example.org/">', 0),
    ],
)
def test_what_a_page_fetches_from_elsewhere_is_noticed(html, found):
    assert len(rendered.external_assets(html)) == found


def test_links_of_the_repositorys_pages_lead_into_the_site():
    files = repository_files(ROOT)
    assert "](work.md)" in files["architecture.md"]
    assert "docs/" not in re.findall(r"\]\(([^)]+)\)", files["architecture.md"])
    assert as_rendered("[a](../ARCHITECTURE.md#the-loop)", "launch.md") == (
        "[a](architecture.md#the-loop)"
    )
    assert as_rendered("[a](../../SECURITY.md)", "how-to/x.md") == "[a](../security.md)"
    assert as_rendered("| `a\\|b` |\n", "x.md") == "| `a|b` |\n"
    # A page that is generated and a file as well would be hidden.
    made = {*repository_files(ROOT), "adr/index.md", "reference/metrics.md", "demo/report.html"}
    assert [path for path in made if Path(DOCS / path).exists()] == []
