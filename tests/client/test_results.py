import pandas as pd
import pytest

from annotation import access, models
from assay_client import InvalidRequest, JobUnsuccessful, NoResult, NotThere
from metrics.models import ScoringRun
from results.models import Result
from simulation.models import StoredExperiment
from simulation.stored_experiments import stop_run
from tests.annotation.studies import rate, rating_study
from tests.codes import refused
from tests.console.work import work_off
from tests.retrieval.collections import evaluated_collection, filled_collection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mine(client, rosa, team):
    study = rating_study("ratings", n_items=3, owner=rosa)
    access.give_to_team(study=study, team=team, actor=rosa)
    for name in ("ann", "bob"):
        for number, item in enumerate(study.items.all()):
            rate(study, name, item.key, {"alpha": 80 - number, "beta": 20 + number})
    client.on_progress = lambda job: work_off()
    work_off()
    return client.study("ratings")


def test_systems_and_comparisons_are_the_servers_and_a_dispute_is_decided(mine):
    mine.client.send("POST", f"{mine.address}results/", {"result": "results"})
    work_off()
    systems, pairs = mine.systems(), mine.comparisons()
    stored = Result.objects.get(kind="human_results").record
    whole = [row for row in stored["systems"] if row["scope"] == "all"]
    assert list(systems["mean"]) == [row["mean"] for row in whole]
    assert list(systems["system"]) == ["alpha", "beta"]
    assert list(pairs["p_adjusted"]) == [row["p_adjusted"] for row in stored["pairs"]]
    assert "alpha" in mine.results("questions")["answer"][0]
    study = models.Study.objects.get()
    rate(study, "eve", study.items.first().key, {"alpha": 1, "beta": 99})
    mine.wait(mine.client.send("POST", f"{mine.address}results/", {"result": "agreement"}))
    dispute = mine.disputes().iloc[0]
    decision = mine.adjudicate(dispute["candidate_id"], dispute["question"], 60, note="Why.")
    assert (decision["value"], decision["note"]) == (60, "Why.")


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
    assert models.Study.objects.get().questions.get().level == "ordinal"


@pytest.mark.slow
def test_scores_are_held_against_people_metrics_scored_and_a_protocol_checked(mine, tmp_path):
    rows = [
        {"item": item.key, "system": candidate.system, "mine": float(candidate.system == "alpha")}
        for item in models.Study.objects.get().items.all()
        for candidate in item.candidates.all()
    ]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    mine.add_scores(path, signature="mine|v:1")
    assert ScoringRun.objects.get().signature == "mine|v:1"
    with refused(InvalidRequest, "invalid", field="uses"):
        mine.add_scores(path, uses={"other": "item"})
    mine.wait(mine.client.send("POST", f"{mine.address}results/", {"result": "validation"}))
    assert [row["metric"] for row in mine.best_metrics()["top"]] == ["mine"]
    assert set(mine.validation("systems")["system"]) == {"alpha", "beta"}
    assert "distinct_n" in set(mine.metrics()["name"])
    request = mine.estimate_scoring("distinct_n", n=3)
    assert ScoringRun.objects.count() == 1
    mine.score(request)
    assert "n:3" in ScoringRun.objects.get(metric="distinct_n").signature
    mine.save_protocol(template="style_ratings")
    text = mine.protocol()["yaml"]
    assert mine.check_protocol(yaml=text)["faults"] == []
    assert mine.save_protocol(yaml=text)["is_draft"]


# Collections.


@pytest.fixture
def tracks(client, team, rosa):
    evaluated_collection(team, rosa)
    return client.collection("tracks")


@pytest.mark.slow
def test_results_of_a_collection_come_as_tables_and_are_waited_for(client, tracks):
    assert list(client.collections()["slug"]) == ["tracks"]
    assert set(tracks.files("run")["name"]) == {"bm25", "dense", "rm3"}
    assert list(tracks.results("comparisons")["number"]) == [1]
    means = tracks.table("evaluations", "results")
    topics = tracks.topics()
    for row in means.itertuples():
        values = topics[(topics["run"] == row.run) & (topics["measure"] == row.measure)]["value"]
        assert values.mean() == pytest.approx(row.mean)
    assert "nDCG@10" in tracks.result("comparisons")["answer"]
    job = tracks.evaluate("qrels.txt", runs=["dense", "bm25"], measures=["P@5"])
    assert job.state == "done"
    assert set(tracks.table("evaluations", "results")["measure"]) == {"P@5"}
    with refused(InvalidRequest, "invalid", field="qrels"):
        tracks.evaluate("nothing.txt")
    job = tracks.draw_targets(6, "max", "bm25", strata=2, seed=11)
    assert job.state == "done"
    drawn = tracks.drawn_targets()
    strata = tracks.table("targets", "strata").set_index("stratum")
    assert len(drawn) == strata["n_drawn"].sum() == 6
    assert (1 / drawn["probability"]).sum() == pytest.approx(strata["n_targets"].sum())


# Experiments.

SETTINGS = {"users": ["base", "tol:2"], "n_turns": 3, "measures": ["nDCG@10", "RR@10"]}


@pytest.fixture
def experiment(client, team, rosa):
    filled_collection(team, rosa)
    return client.create_experiment("Tracks again", collection="tracks", qrels="qrels.txt")


@pytest.mark.slow
def test_an_experiment_is_made_run_and_read(client, experiment):
    run = experiment.run(**SETTINGS)
    assert run["is_finished"]
    assert run["answer"]
    assert list(experiment.runs()["number"]) == [1]
    results = experiment.table("results")
    assert len(results) == 2 * 2 * 2
    last = experiment.turns().query("turn == 3").set_index(["recommender", "user", "measure"])
    values = experiment.targets().groupby(["recommender", "user", "measure"])["value"].mean()
    for row in results.itertuples():
        key = (row.recommender, row.user, row.measure)
        assert last.loc[key, "mean"] == pytest.approx(row.mean)
        assert values[key] == pytest.approx(row.mean)
    assert set(experiment.choices()["choice"]) >= {"qrels", "carry", "turn"}
    assert experiment.run(**SETTINGS)["number"] == 1
    [row] = client.experiments(team="lab").to_dict("records")
    assert row["slug"] == experiment.slug
    assert list(client.catalogues()["kind"]) == ["stand-in"]
    assert client.recommenders().empty
    with pytest.raises(NotThere):
        client.experiment("elsewhere")


@pytest.mark.slow
def test_a_run_that_was_stopped_is_an_error_and_the_same_call_goes_on(client, experiment):
    with refused(NoResult, "not_run"):
        experiment.result()
    row, work = StoredExperiment.objects.get(), client.on_progress
    client.on_progress = lambda job: stop_run(version=row.versions.get())
    with pytest.raises(JobUnsuccessful) as caught:
        experiment.run(**SETTINGS)
    assert caught.value.job.state == "stopped"
    client.on_progress = work
    with refused(NoResult, "unfinished"):
        experiment.table("results")
    assert experiment.run(**SETTINGS)["is_finished"]
