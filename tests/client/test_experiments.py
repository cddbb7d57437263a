import pytest

from assay_client import InvalidRequest, JobUnsuccessful, NoResult, NotThere
from simulation.models import StoredExperiment
from simulation.stored_experiments import stop_run
from tests.codes import refused, refused_naming
from tests.retrieval.collections import filled_collection

pytestmark = pytest.mark.django_db(transaction=True)
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


def test_what_cannot_be_run_is_refused_with_the_reason(client, experiment):
    with refused_naming(InvalidRequest, "SimBase"):
        experiment.run(users=["tol:2"])
    with refused_naming(InvalidRequest, "/etc/passwd"):
        experiment.run(recommenders=["/etc/passwd"])
    with refused(NoResult, "not_run"):
        experiment.result()


@pytest.mark.slow
def test_a_run_that_was_stopped_is_an_error_and_the_same_call_goes_on(client, experiment):
    row, work = StoredExperiment.objects.get(), client.on_progress
    client.on_progress = lambda job: stop_run(version=row.versions.get())
    with pytest.raises(JobUnsuccessful) as caught:
        experiment.run(**SETTINGS)
    assert caught.value.job.state == "stopped"
    client.on_progress = work
    with refused(NoResult, "unfinished"):
        experiment.table("results")
    assert experiment.run(**SETTINGS)["is_finished"]
