import pandas as pd
import pytest

from annotation.access import give_to_team
from annotation.models import Study
from assay_client import Client, InvalidRequest
from metrics.models import ScoringRun
from results.models import Result
from tests.annotation.studies import rate, rating_study
from tests.codes import refused
from tests.console.work import work_off

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mine(client: Client, rosa, team):
    study = rating_study("ratings", n_items=3, owner=rosa)
    give_to_team(study=study, team=team, actor=rosa)
    for name in ("ann", "bob"):
        for number, item in enumerate(study.items.all()):
            rate(study, name, item.key, {"alpha": 80 - number, "beta": 20 + number})
    client.on_progress = lambda job: work_off()
    work_off()
    return client.study("ratings")


def test_systems_and_comparisons_are_the_servers(mine):
    mine.client.send("POST", f"{mine.address}results/", {"result": "results"})
    work_off()
    systems, pairs = mine.systems(), mine.comparisons()
    stored = Result.objects.get(kind="human_results").record
    whole = [row for row in stored["systems"] if row["scope"] == "all"]
    assert list(systems["mean"]) == [row["mean"] for row in whole]
    assert list(systems["system"]) == ["alpha", "beta"]
    assert list(pairs["p_adjusted"]) == [row["p_adjusted"] for row in stored["pairs"]]
    assert "alpha" in mine.results("questions")["answer"][0]


@pytest.mark.slow
def test_scores_from_a_file_are_held_against_people(mine, tmp_path):
    rows = [
        {"item": item.key, "system": candidate.system, "mine": float(candidate.system == "alpha")}
        for item in Study.objects.get().items.all()
        for candidate in item.candidates.all()
    ]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    mine.add_scores(path, signature="mine|v:1")
    assert ScoringRun.objects.get().signature == "mine|v:1"
    with refused(InvalidRequest, "invalid", field="uses"):
        mine.add_scores(path, uses={"other": "item"})
    job = mine.client.send("POST", f"{mine.address}results/", {"result": "validation"})
    mine.wait(job)
    assert [row["metric"] for row in mine.best_metrics()["top"]] == ["mine"]
    assert set(mine.validation("systems")["system"]) == {"alpha", "beta"}


def test_labels_collected_elsewhere_are_a_study(client, team, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "doc,rater,style,system,output\nd1,Ann,4,alpha,Hi\nd1,Bob,5,alpha,Hi\nd2,Ann,2,beta,Bye\n"
    )
    uses = {"doc": "item", "rater": "annotator", "style": "value"}
    uses |= {"system": "system", "output": "response"}
    asked = {"style": {"level": "ordinal", "low": 1, "high": 5}}
    study = client.import_labels(path, title="Elsewhere", team="lab", uses=uses, questions=asked)
    assert sorted(study.judgments()["value"]) == [2, 4, 5]
    assert Study.objects.get().questions.get().level == "ordinal"


@pytest.mark.slow
def test_a_metric_is_scored_and_a_protocol_checked(mine):
    assert "distinct_n" in set(mine.metrics()["name"])
    request = mine.estimate_scoring("distinct_n", n=3)
    assert not ScoringRun.objects.exists()
    mine.score(request)
    assert "n:3" in ScoringRun.objects.get().signature
    mine.save_protocol(template="style_ratings")
    text = mine.protocol()["yaml"]
    assert mine.check_protocol(yaml=text)["faults"] == []
    assert mine.save_protocol(yaml=text)["is_draft"]


def test_a_dispute_is_decided(mine):
    study = Study.objects.get()
    first = study.items.first()
    rate(study, "eve", first.key, {"alpha": 1, "beta": 99})
    mine.wait(mine.client.send("POST", f"{mine.address}results/", {"result": "agreement"}))
    dispute = mine.disputes().iloc[0]
    decision = mine.adjudicate(dispute["candidate_id"], dispute["question"], 60, note="Why.")
    assert (decision["value"], decision["note"]) == (60, "Why.")
