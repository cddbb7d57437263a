import json

import pytest
from django.core.management import CommandError

from simulation.drawn_products import drawn_catalogue
from tests.annotation.importing import command_output
from tests.codes import refused_naming
from tests.simulation.conftest import neighbours, write_qrels

DRAWN = "drawn:400"


@pytest.fixture
def qrels(tmp_path):
    catalogue = drawn_catalogue(400)
    return write_qrels(tmp_path / "qrels.txt", catalogue, neighbours(catalogue, 30))


def output(*arguments):
    return command_output("simulate", "--catalogue", DRAWN, *arguments)


def record_of(*arguments):
    return json.loads(output(*arguments, "--json"))


def test_an_experiment_from_qrels_as_json(qrels):
    arguments = (
        *("--qrels", qrels, "--recommender", "embedding", "--recommender", "random"),
        *("--user", "base", "--user", "prob:1:d=0.62", "--turns", 5, "--seed", 0),
    )
    record = record_of(*arguments)
    assert record["settings"]["n_turns"] == 5
    assert record["users"][1]["p_switch"] == pytest.approx(0.7548, abs=5e-5)
    assert len(record["results"]) == 2 * 2 * 3 * 5
    assert {row["compared"] for row in record["comparisons"]} == {"users", "recommenders"}
    assert record == record_of(*arguments)


def test_the_same_as_a_table_with_a_log(qrels, tmp_path):
    log = tmp_path / "log.jsonl"
    text = output("--qrels", qrels, "--log", log, "--mode", "released")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    users = {row["user"] for row in rows}
    assert {name.split()[0] for name in users} == {"SimBase", "MetaSimTol", "MetaSimProb"}
    assert all(name in text and "released" in name for name in users)
    assert "Note: " in text
    assert all(row["critique"] for row in rows if row["in_force"])


def test_users_that_pages_refuse_are_noted(qrels):
    arguments = ("--qrels", qrels, "--recommender", "random", "--turns", 3)
    usual = record_of(*arguments)["notes"]
    users = ("--user", "prob:3:0", "--user", "tol:20")
    notes = record_of(*arguments, *users)["notes"]
    same, _first_user = [note for note in notes if note not in usual]
    assert "MetaSimTol tolerance 20" in same
    text = output(*arguments, *users)
    assert all(f"Note: {note}" in text for note in notes)


def test_choices_of_one_user_and_the_order_under_all_others(qrels, tmp_path):
    second = tmp_path / "second.txt"
    lines = qrels.read_text().splitlines()
    second.write_text("".join(f"{line[:-1]}{number % 2}\n" for number, line in enumerate(lines)))
    arguments = [
        *("--qrels", qrels, "--recommender", "embedding", "--recommender", "random", "--turns", 3),
        *("--user", "prob:1:1", "--user", "prob:1:1,mode=released,turn_base=1,sticky=yes"),
        *("--measure", "RR@10", "--other-qrels", second),
    ]
    record = record_of(*arguments)
    user = record["users"][1]
    assert all(part in user["name"] for part in ("released", "turn_base 1", "sticky True"))
    assert (user["switches_on"], user["turn_base"], user["sticky"]) == ("gain", 1, True)
    choices = {(row["choice"], row["value"]) for row in record["sensitivity"]}
    assert {("user", user["name"]), ("judgments", "second.txt")} <= choices
    first = ("judgments", record["users"][0]["name"])
    [own] = [row for row in record["sensitivity"] if (row["choice"], row["user"]) == first]
    assert own["tau"] == 1
    second.write_text("shoe-000001 0 shoe-000002 1\n")
    with refused_naming(CommandError, "second.txt"):
        record_of("--qrels", qrels, "--other-qrels", second)


@pytest.mark.slow
def test_pictures_are_files(qrels, tmp_path):
    folder = tmp_path / "figures"
    users = [part for user in ("tol:2", "prob:3:0.5", "prob:3:0.75") for part in ("--user", user)]
    output("--qrels", qrels, "--turns", 4, *users, "--figures", folder)
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 9
    assert "turns-nDCG@10.svg" in names
    assert all(path.read_text().startswith("<svg") for path in folder.iterdir())
    folder = tmp_path / "one tolerance"  # of which there is no picture against it
    output("--qrels", qrels, "--turns", 4, "--figures", folder)
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"turns"}


def test_first_items_are_those_of_a_file(qrels, tmp_path):
    targets = sorted({line.split()[0] for line in qrels.read_text().splitlines()})
    starts, log = tmp_path / "starts.csv", tmp_path / "log.jsonl"
    starts.write_text("target,start\n" + "".join(f"{one},shoe-000399\n" for one in targets))
    output("--qrels", qrels, "--starts", starts, "--log", log)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert {row["shown"] for row in rows if row["turn"] == 0} == {"shoe-000399"}
    starts.write_text("target,item\n")
    with refused_naming(Exception, "starts.csv", "start"):
        output("--qrels", qrels, "--starts", starts)


def test_names_that_mean_nothing_are_refused(qrels):
    for option, value, *named in (
        ("--catalogue", "shop", "catalogue", "FOLDER"),
        ("--user", "tol", "'tol'", "base"),
        ("--user", "tol:1,speed=2", "'speed'", "mode"),
        ("--user", "tol:1,sticky=1", "sticky"),
        ("--user", "prob:1:2", "'prob:1:2'", "p_switch"),
        ("--recommender", "best", "recommender", "random"),
        ("--recommender", "embedding:7", "recency"),
        ("--measure", "nDCG@100", "10"),
        ("--measure", "NDGC", "measure"),
    ):
        with refused_naming(CommandError, *named):
            output("--qrels", qrels, option, value)


def test_dialogues_of_the_released_layout(tmp_path):
    alternatives, starts = tmp_path / "alternatives.csv", tmp_path / "starts.csv"
    alternatives.write_text('target_img_id,target_alt_id\n3,"u3,5,9-t0"\n4,"u4,7-t0"\n')
    starts.write_text('qid,docno,docid,rank\n"u3,5,9-t0",x,20,0\n"u4,7-t0",y,21,0\n')
    record = record_of("--dialogues", alternatives, starts)
    assert {row["n_targets"] for row in record["results"]} == {2}


def test_dialogues_that_cannot_be_read_are_refused_by_line(tmp_path):
    alternatives, starts = tmp_path / "alternatives.csv", tmp_path / "starts.csv"
    starts.write_text('qid,docno,docid,rank\n"u3,5-t0",x,20,0\n"u3,999-t0",x,20,0\n')
    for line, *named in (
        ('3,"u3-t0"', "2", "target_alt_id", "'u3-t0'"),
        ('3,"u3,6-t0"', "2", "target_alt_id", "starts.csv", "u3,6-t0"),
        ('3,"u3,999-t0"', "999"),
    ):
        alternatives.write_text(f"target_img_id,target_alt_id\n{line}\n")
        with refused_naming(Exception, "alternatives.csv", *named):
            output("--dialogues", alternatives, starts)
