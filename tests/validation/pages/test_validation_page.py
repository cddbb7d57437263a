import io
import json
import re
import time
import zipfile
from collections import Counter
from functools import partial
from html import unescape
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from annotation import models, study_facts
from annotation.result_kinds.base import find_study_kind
from metrics.stored_scores import write_scores
from results.models import ResultPart
from tests.annotation.importing import command_output
from tests.annotation.studies import rate, rated_study, rating_study
from tests.console import filled, pages
from tests.console.conftest import PASSWORD
from tests.validation.pages.test_results_page import close_study
from validation.analysis.records import CorrelationRecord
from validation.documents.metrics_answers import measure_name
from validation.pages.metric_agreement import TABLES
from validation.versions import StoredResults, list_validations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

CHARTS = ["heat-map", "forest", "significance", "ranks", "scatter"]


@pytest.fixture
def study(researcher):
    return filled.scored_study(
        owner=researcher,
        questions=("empathy", "tone"),
        conditions=("calm", "cross"),
        metrics=("nll", "bleu"),
    )


@pytest.fixture
def fetch(fetch_picture):
    return partial(fetch_picture, "validation-picture")


def html(browser, study):
    return browser.get(reverse("console:validation", args=[study.slug])).content.decode()


@pytest.mark.slow
def test_every_chart_is_a_specification_and_a_file_with_the_data_of_the_table(fetch, study):
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    for chart in CHARTS:
        spec = json.loads(fetch(study, chart, "json").content)
        assert spec["background"] == "var(--ground)"
        answer = fetch(study, chart, "svg", question="tone")
        assert answer.content.startswith(b"<svg")
        name = chart if chart == "heat-map" else f"{chart}-q2"
        assert answer["Content-Disposition"] == f'attachment; filename="scored-{name}.svg"'
    assert fetch(study, "forest", "png").content.startswith(b"\x89PNG")
    assert fetch(study, "forest", "pdf").content.startswith(b"%PDF")
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    values = {
        (row.metric, row.level, row.coefficient, row.by): row.value
        for row in StoredResults(list_validations(study).get()).rows(
            CorrelationRecord, question="tone"
        )
    }
    query = {"question": "tone", "level": "pooled", "coefficient": "pearson", "condition": "cross"}
    rows = pages.rows_of(fetch(study, "forest", "csv", **query))
    assert {row["metric"]: float(row["value"]) for row in rows} == {
        metric: values[metric, "pooled", "pearson", "cross"] for metric in ("nll", "bleu")
    }
    points = pages.rows_of(fetch(study, "scatter", "csv", metric="bleu"))
    assert len(points) == 6  # a point for each candidate
    assert {row["item"] for row in points} == {"d0", "d1", "d2"}


@pytest.mark.slow
def test_intervals_are_said_to_be_of_the_level_that_they_are_of(page_text, study):
    filled.store_validation(study, confidence=0.975, n_resamples=20)
    page = page_text(study, "validation")
    assert page.count("97.5 %") >= 3
    assert not re.search(r"\b9[58] ?%", page)


@pytest.mark.slow
def test_what_is_not_there_is_not_found(fetch, study, rosa):
    assert fetch(study, "forest", "json").status_code == 404  # not computed yet
    find_study_kind(study_facts.VALIDATION).compute_now(study)
    assert fetch(study, "pie", "json").status_code == 404
    assert fetch(study, "forest", "exe").status_code == 404
    where = reverse("console:validation", args=[study.slug])
    for name in ("question", "level", "coefficient", "condition", "metric"):
        query = {name: "none"}
        assert fetch(study, "forest", "json", **query).status_code == 404
        assert rosa.get(where, query).status_code == 404


@pytest.mark.slow
def test_the_page_tells_each_picture_in_words_and_shows_tables_and_methods(page_text, rosa, study):
    page_text(study, "validation")
    page = rosa.get(reverse("console:validation", args=[study.slug])).content.decode()
    for name in CHARTS:
        assert re.search(rf'<figure class="chart" id="{name}">.*?<figcaption>[^<]*\w', page, re.S)
    for name in TABLES:
        assert reverse("console:validation-table", args=[study.slug, name]) in page


@pytest.mark.parametrize(
    ("systems", "chart"), [(("alpha", "beta"), "significance"), (("alpha",), "ranks")]
)
def test_one_metric_is_not_tested_and_one_system_is_not_ranked(
    rosa, fetch, researcher, systems, chart
):
    study = filled.scored_study("alone", owner=researcher, systems=systems)
    assert f'id="{chart}"' not in html(rosa, study)
    assert fetch(study, chart, "json").status_code == 404


@pytest.mark.slow
def test_the_report_can_be_taken_away_in_every_form_and_begins_as_the_metrics_page(
    page_text, rosa, study
):
    page = page_text(study, "report")
    where = reverse("console:report", args=[study.slug])
    files = [name for name, _about in rosa.get(where).context["files"]]
    assert "report-latex.zip" in files
    for name in files:
        assert name in page
        answer = rosa.get(reverse("console:report-file", args=[study.slug, name]))
        assert answer["Content-Disposition"] == f'attachment; filename="scored-{name}"'
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                assert archive.testzip() is None
                assert {"report.tex", "report.md", "correlations.csv"} & set(archive.namelist())
    html = rosa.get(reverse("console:report-file", args=[study.slug, "report.html"]))
    ElementTree.fromstring(html.content.decode().removeprefix("<!DOCTYPE html>\n"))
    assert rosa.get(reverse("console:report-file", args=[study.slug, "x.exe"])).status_code == 404
    page_text(study, "validation")
    find_study_kind(study_facts.REPORT).compute_now(study)
    content = ResultPart.objects.get(name="report.html").content.decode()
    beginning = pages.words_of(content.partition("<section")[0])
    where = reverse("console:validation", args=[study.slug])
    for question in ("empathy", "tone"):
        best = rosa.get(where, {"question": question}).context["view"].best
        assert measure_name(best.best_records[0]) in best.estimate
        assert f"{question}: {best.answer}" in unescape(beginning)
        for part in (best.answer, best.estimate):
            assert part in pages.words_of(content)


def test_without_scores_there_is_nothing_to_report(rosa, researcher):
    for study in (rated_study("bare", owner=researcher), rating_study("empty", owner=researcher)):
        page = rosa.get(reverse("console:report", args=[study.slug]))
        assert not page.context.get("files")
    assert not ResultPart.objects.exists()


@pytest.mark.slow
def test_the_report_command_prints_what_buying_more_costs_beside_its_files(researcher, tmp_path):
    study = close_study(researcher)
    filled.add_scores(study)
    options = {"output": tmp_path, "format": ["md"], "json": True}
    assert json.loads(command_output("report", "close", **options))["prices"] == {}
    filled.add_batch(study)
    [price] = json.loads(command_output("report", "close", **options))["prices"].values()
    assert "$0.10" in price
    assert price in command_output("report", "close", **(options | {"json": False}))
    assert not any(price in path.read_text() for path in tmp_path.glob("*.md"))


def test_replies_without_a_score_are_counted_beside_the_undefined(rosa, study):
    run = study.scoring_runs.first()
    run.judge = {"n_replies": 7180, "unread": {"ambiguous": 2411, "no_number": 3}}
    run.save()
    assert {"7,180", "2,411"} <= set(re.findall(r"[\d,]*\d", html(rosa, study)))


SYSTEMS = ("alpha", "beta", "gamma", "delta")
N_ITEMS = 12
PRIMARY, VARIANTS = 10, 13
OPENED = ("comparisons", "systems", "disagreements", "worst", "sensitivity", "ceilings", "coverage")
PARTS = ["forest", "heat-map", "significance", "ranks", "scatter"]


@pytest.fixture(scope="module")
def stored_sized(stored_for_module):
    owner = User.objects.create_user("rosa", password=PASSWORD)
    row = rating_study("sized", owner=owner, systems=SYSTEMS, n_items=N_ITEMS)
    for number in range(N_ITEMS):
        for person in range(3):
            values = [(17 * number + 29 * at + 13 * person * at) % 101 for at in range(4)]
            rate(row, f"p{person}", f"d{number}", dict(zip(SYSTEMS, values, strict=True)))
    for at in range(PRIMARY + VARIANTS):
        scores = {
            (f"d{number}", system): float((number * 31 + (at + 3) * position * 7) % 97)
            for number in range(N_ITEMS)
            for position, system in enumerate(SYSTEMS)
        }
        write_scores(
            study=row,
            metric=(f"m{at}" if at < PRIMARY else f"m{at - PRIMARY}_variant")[:64],
            signature=f"m{at}|v:1",
            values=scores,
            is_primary=at < PRIMARY,
        )
    find_study_kind(study_facts.VALIDATION).compute_now(row)
    return row


@pytest.fixture
def sized(stored_sized, db):
    return models.Study.objects.get(pk=stored_sized.pk)


def get(client, address, **headers):
    with CaptureQueriesContext(connection) as queries:
        start = time.process_time()
        answer = client.get(address, headers=headers)
        seconds = time.process_time() - start
    return answer, [query["sql"] for query in queries], seconds


def shape(sql):
    return re.sub(r"'[^']*'|\b\d+\b", "?", sql)


@pytest.mark.slow
def test_the_page_is_light(rosa, sized):
    where = reverse("console:validation", args=[sized.slug])
    get(rosa, where)  # templates are compiled once for a process
    sizes = [get(rosa, where + query) for query in ("", "?variants=1", "?level=pooled")]
    for answer, queries, _ in sizes:
        assert answer.status_code == 200
        assert len(answer.content) <= 300_000
        assert len(queries) <= 15, "\n".join(queries)
        assert max(Counter(map(shape, queries)).values()) <= 2
    assert min(seconds for _, _, seconds in sizes) <= 0.3


def test_a_picture_is_few_queries_and_is_known_again(rosa, sized):
    for part in PARTS:
        where = reverse("console:validation-picture", args=[sized.slug, part, "json"])
        answer, queries, _ = get(rosa, where)
        assert answer.status_code == 200
        assert len(queries) <= 15
        assert max(Counter(map(shape, queries)).values()) <= 2
        again, fewer, _ = get(rosa, where, if_none_match=answer["ETag"])
        assert (again.status_code, again.content) == (304, b"")
        assert len(fewer) < len(queries)
        other, _, _ = get(rosa, f"{where}?level=item", if_none_match=answer["ETag"])
        assert other.status_code == 200


def test_a_table_is_made_when_it_is_opened(rosa, sized):
    for name in OPENED:
        where = reverse("console:validation-table", args=[sized.slug, name])
        part, queries, _ = get(rosa, where, hx_request="true")
        assert part.status_code == 200
        assert len(queries) <= 15
        assert max(Counter(map(shape, queries)).values()) <= 3  # one for each kind of record
        assert b"<html" not in part.content
        assert b"<table" in part.content
        again, _, _ = get(rosa, where, hx_request="true", if_none_match=part["ETag"])
        assert again.status_code == 304
        page, _, _ = get(rosa, where)
        assert b"<html" in page.content
        assert b"<table" in page.content


@pytest.mark.slow
def test_another_version_is_another_etag(rosa, sized):
    where = reverse("console:validation-picture", args=[sized.slug, "forest", "json"])
    before = rosa.get(where)["ETag"]
    write_scores(study=sized, metric="m0", signature="m0|v:1", values={("d0", "alpha"): 500.0})
    find_study_kind(study_facts.VALIDATION).compute_now(sized)
    answer = rosa.get(where, headers={"if-none-match": before})
    assert answer.status_code == 200
    assert answer["ETag"] != before
    old = rosa.get(where, {"report": 1})
    assert old.status_code == 200
    assert old.content != answer.content


def test_a_table_of_no_name_is_not_found(rosa, sized):
    where = reverse("console:validation-table", args=[sized.slug, "none"])
    assert rosa.get(where).status_code == 404
    good = reverse("console:validation-table", args=[sized.slug, "worst"])
    assert rosa.get(good, {"report": "x"}).status_code == 404
    assert rosa.get(good, {"report": "99"}).status_code == 404
