import pytest

from assay_client import InvalidRequest
from tests.codes import refused
from tests.retrieval.collections import evaluated_collection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tracks(client, team, rosa):
    evaluated_collection(team, rosa)
    return client.collection("tracks")


@pytest.mark.slow
def test_results_of_a_collection_come_as_tables(client, tracks):
    assert list(client.collections()["slug"]) == ["tracks"]
    assert set(tracks.files("run")["name"]) == {"bm25", "dense", "rm3"}
    assert list(tracks.results("comparisons")["number"]) == [1]
    means = tracks.table("evaluations", "results")
    topics = tracks.topics()
    for row in means.itertuples():
        values = topics[(topics["run"] == row.run) & (topics["measure"] == row.measure)]["value"]
        assert values.mean() == pytest.approx(row.mean)
    assert "nDCG@10" in tracks.result("comparisons")["answer"]


@pytest.mark.slow
def test_runs_are_evaluated_and_waited_for(tracks):
    job = tracks.evaluate("qrels.txt", runs=["dense", "bm25"], measures=["P@5"])
    assert job.state == "done"
    assert set(tracks.table("evaluations", "results")["measure"]) == {"P@5"}
    with refused(InvalidRequest, "invalid", field="qrels"):
        tracks.evaluate("nothing.txt")


@pytest.mark.slow
def test_targets_are_drawn_and_come_with_their_probability(tracks):
    job = tracks.draw_targets(6, "max", "bm25", strata=2, seed=11)
    assert job.state == "done"
    drawn = tracks.drawn_targets()
    strata = tracks.table("targets", "strata").set_index("stratum")
    assert len(drawn) == strata["n_drawn"].sum() == 6
    assert (1 / drawn["probability"]).sum() == pytest.approx(strata["n_targets"].sum())
