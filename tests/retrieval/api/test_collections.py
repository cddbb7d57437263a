import json

import pytest

from accounts.roles import Scope
from results.models import Result
from retrieval.models import TopicValue
from tests.console.api.conftest import program_of
from tests.console.pages import words_of
from tests.simulation.api.test_experiments import rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
TRACKS = "/api/v1/collections/tracks/"
KINDS = ["evaluations", "comparisons", "reuse", "machines", "audits", "pools", "reports", "targets"]
SAMPLE = {"n": 6, "predictor": "max", "source": "bm25", "strata": 2}


@pytest.mark.slow
def test_each_kind_of_result_is_listed_and_read(reader, tracks):
    for kind in KINDS:
        content = reader.get(f"{TRACKS}{kind}/").json()
        assert content["count"] >= 1
        row = content["results"][0]
        version = Result.objects.get(collection=tracks, kind=row["kind"], number=1)
        assert row["fingerprint"] == version.fingerprint
        assert row["signature"].endswith(f"|sha256:{version.fingerprint[:12]}")
        one = reader.get(f"{TRACKS}{kind}/1/").json()
        assert one["answer"]
        assert any(one["tables"].values())
        names = version.files.values_list("name", flat=True)
        assert [file["name"] for file in one["files"]] == list(names)
        assert reader.get(f"{TRACKS}{kind}/99/").status_code == 404
    answer = reader.get(f"{TRACKS}reviews/")  # no such kind
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "reviews" in answer.json()["detail"]


def test_what_is_said_is_what_the_pages_say(reader, rosa, tracks):
    for kind, page in (("comparisons", "trust"), ("reuse", "reuse"), ("machines", "machine")):
        words = words_of(rosa.get(f"/collections/tracks/{page}/").content.decode())
        assert reader.get(f"{TRACKS}{kind}/1/").json()["answer"] in words


def test_an_evaluation_has_its_rows_and_every_topics_value(reader, rosa, tracks):
    tables = reader.get(f"{TRACKS}evaluations/1/").json()["tables"]
    whole = json.loads(b"".join(rosa.get("/collections/tracks/evaluation/evaluation.json")))
    for row in whole["results"]:
        row.pop("per_topic")
    assert tables["results"] == whole["results"]
    assert tables["comparisons"] == whole["comparisons"]
    values = rows_of(reader, f"{TRACKS}evaluations/1/topics/", limit=100)
    assert len(values) == TopicValue.objects.count() > 100
    first = TopicValue.objects.order_by("pk")[0]
    of = {"run": first.result.run.name, "measure": first.result.measure.name}
    assert values[0] == of | {"id": first.pk, "topic": first.topic, "value": first.value}


def test_collections_and_files_are_listed(reader, tracks):
    [row] = reader.get("/api/v1/collections/").json()["results"]
    assert (row["slug"], row["team"], row["n_runs"], row["n_qrels"]) == ("tracks", "lab", 3, 3)
    assert reader.get(TRACKS).json() == row
    assert reader.get("/api/v1/collections/?q=nothing").json()["count"] == 0
    files = reader.get(f"{TRACKS}files/?kind=run").json()["results"]
    assert [file["name"] for file in files] == ["bm25", "dense", "rm3"]
    assert {file["family"] for file in files} == {"lexical", ""}
    for file in files:
        assert file["reading"]["n_rows"] == file["reading"]["n_used"] == file["n_lines"]


def test_an_evaluation_is_asked_for_and_followed(reader, tracks):
    body = {"qrels": "qrels.txt", "runs": ["dense", "bm25"], "measures": ["P@5"], "seed": 3}
    answer = reader.send("post", f"{TRACKS}evaluations/", body)
    assert answer.status_code == 202
    assert reader.get(answer["Location"]).json()["state"] == "done"
    assert Result.objects.get(kind="evaluation", number=2).settings["measures"] == ["P@5"]
    results = reader.get(f"{TRACKS}evaluations/2/").json()["tables"]["results"]
    assert [row["run"] for row in results] == ["bm25", "dense"]


def test_an_evaluation_weighs_the_topics_of_a_sample(reader, tracks):
    sample = Result.objects.get(kind="targets", number=1)
    drawn = set(sample.sampled_targets.values_list("topic", flat=True))
    topics = set(TopicValue.objects.values_list("topic", flat=True))
    for topic in topics - drawn:
        sample.sampled_targets.create(topic=topic, docno="", stratum="1", inclusion=0.5)
    body = {"qrels": "qrels.txt", "measures": ["P@5"], "weights": 1}
    answer = reader.send("post", f"{TRACKS}evaluations/", body)
    assert answer.status_code == 202
    job = reader.get(answer["Location"]).json()
    assert job["state"] == "done", job
    tables = reader.get(f"{TRACKS}evaluations/2/").json()["tables"]
    assert [row["run"] for row in tables["weighted_means"]] == ["bm25", "dense", "rm3"]
    assert len(tables["weighted_differences"]) == 3
    assert tables["weighted_means"][0]["ci_low"] < tables["weighted_means"][0]["mean"]


def test_an_evaluation_that_cannot_be_is_refused_by_field(reader, tracks):
    for body, field in (
        ({}, "qrels"),
        ({"qrels": "none"}, "qrels"),
        ({"qrels": "qrels.txt", "weights": 9}, "weights"),
    ):
        answer = reader.send("post", f"{TRACKS}evaluations/", body)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field]), body
    body = {"qrels": "qrels.txt", "measures": ["nCDG@10"]}
    answer = reader.send("post", f"{TRACKS}evaluations/", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "runs_unfit")
    assert "nCDG" in answer.json()["detail"]


def test_targets_are_drawn_and_read_with_their_probability(reader, tracks):
    answer = reader.send("post", f"{TRACKS}targets/", SAMPLE | {"seed": 11})
    assert answer.status_code == 202
    assert reader.get(answer["Location"]).json()["state"] == "done"
    strata = reader.get(f"{TRACKS}targets/2/").json()["tables"]["strata"]
    assert [row["n_drawn"] for row in strata] == [3, 3]
    rows = reader.get(f"{TRACKS}targets/2/drawn/").json()["results"]
    assert len(rows) == 6
    by_stratum = {row["stratum"]: row["probability"] for row in strata}
    assert all(row["probability"] == pytest.approx(by_stratum[row["stratum"]]) for row in rows)


def test_a_draw_that_cannot_be_is_refused_by_field(reader, tracks):
    for more, field in (
        ({"source": "qrels.txt"}, "source"),
        ({"n": 10_000}, "n"),
        ({"n": 2, "strata": 3}, "strata"),
        ({"predictor": "luck"}, "predictor"),
    ):
        answer = reader.send("post", f"{TRACKS}targets/", SAMPLE | more)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field]), more


def test_strangers_find_no_collection(tracks, users):
    assert program_of(users["other_team"], *Scope).get("/api/v1/collections/").json()["count"] == 0
