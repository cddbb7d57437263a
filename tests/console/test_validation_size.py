"""What the page of metrics weighs, and how much it asks of the database."""

import re
import time
from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from console.results import VALIDATION, compute
from metrics.stored_scores import write_scores
from tests.annotation.studies import rate, rating_study

pytestmark = pytest.mark.django_db

SYSTEMS = ("alpha", "beta", "gamma", "delta")
N_ITEMS = 12
PRIMARY, VARIANTS = 10, 13
PARTS = ["forest", "heat-map", "significance", "ranks", "scatter"]


@pytest.fixture(scope="module")
def study(stored_for_module):
    """The size of the sample study with 10 metrics, which make 23 sets of scores."""
    owner = User.objects.create_user("rosa")
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
        name = f"m{at}" if at < PRIMARY else f"m{at - PRIMARY}_variant"
        write_scores(
            study=row,
            metric=name[:64],
            signature=f"m{at}|v:1",
            values=scores,
            is_primary=at < PRIMARY,
        )
    compute(row, VALIDATION)
    return row


@pytest.fixture
def researcher(study):
    return study.owner


def get(client, address, **headers):
    """The answer, the queries it took, and the seconds of the processor."""
    with CaptureQueriesContext(connection) as queries:
        start = time.process_time()
        answer = client.get(address, headers=headers)
        seconds = time.process_time() - start
    return answer, [query["sql"] for query in queries], seconds


def shape(sql):
    """A query without its values."""
    return re.sub(r"'[^']*'|\b\d+\b", "?", sql)


@pytest.mark.slow
def test_the_page_is_light(rosa, study):
    where = reverse("console:validation", args=[study.slug])
    get(rosa, where)  # templates are compiled once for a process
    sizes = [get(rosa, where + query) for query in ("", "?variants=1", "?level=pooled")]
    for answer, queries, _ in sizes:
        assert answer.status_code == 200
        assert len(answer.content) <= 300_000
        assert len(queries) <= 15, "\n".join(queries)
        assert max(Counter(map(shape, queries)).values()) <= 2
    assert min(seconds for _, _, seconds in sizes) <= 0.3


@pytest.mark.parametrize("part", PARTS)
def test_a_picture_is_few_queries_and_is_known_again(rosa, study, part):
    where = reverse("console:validation-picture", args=[study.slug, part, "json"])
    answer, queries, _ = get(rosa, where)
    assert answer.status_code == 200
    assert len(queries) <= 15
    assert max(Counter(map(shape, queries)).values()) <= 2
    again, fewer, _ = get(rosa, where, if_none_match=answer["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    assert len(fewer) < len(queries)
    other, _, _ = get(rosa, f"{where}?theme=dark", if_none_match=answer["ETag"])
    assert other.status_code == 200


@pytest.mark.parametrize(
    "name",
    ["comparisons", "systems", "disagreements", "worst", "sensitivity", "ceilings", "coverage"],
)
def test_a_table_is_made_when_it_is_opened(rosa, study, name):
    where = reverse("console:validation-table", args=[study.slug, name])
    part, queries, _ = get(rosa, where, hx_request="true")
    assert part.status_code == 200
    assert len(queries) <= 15
    assert max(Counter(map(shape, queries)).values()) <= 2
    assert b"<html" not in part.content
    assert b"<table" in part.content
    again, _, _ = get(rosa, where, hx_request="true", if_none_match=part["ETag"])
    assert again.status_code == 304
    page, _, _ = get(rosa, where)
    assert b"<html" in page.content
    assert b"<table" in page.content


@pytest.mark.slow
def test_another_version_is_another_etag(rosa, study):
    where = reverse("console:validation-picture", args=[study.slug, "forest", "json"])
    before = rosa.get(where)["ETag"]
    write_scores(study=study, metric="m0", signature="m0|v:1", values={("d0", "alpha"): 500.0})
    compute(study, VALIDATION)
    answer = rosa.get(where, headers={"if-none-match": before})
    assert answer.status_code == 200
    assert answer["ETag"] != before
    old = rosa.get(where, {"report": 1})
    assert old.status_code == 200
    assert old.content != answer.content


def test_a_table_of_no_name_is_not_found(rosa, study):
    where = reverse("console:validation-table", args=[study.slug, "none"])
    assert rosa.get(where).status_code == 404
    good = reverse("console:validation-table", args=[study.slug, "worst"])
    assert rosa.get(good, {"report": "x"}).status_code == 404
    assert rosa.get(good, {"report": "99"}).status_code == 404
