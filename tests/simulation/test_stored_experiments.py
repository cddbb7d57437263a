import numpy as np
import pytest
from django.utils import timezone

from accounts.models import AuditEntry, Team, User
from accounts.teams import create_team
from results import kinds
from results.computing import create_result
from simulation import critics, exceptions, experiments, plans, stored_experiments, stored_results
from simulation.comparisons import causes, compare_all, sensitivity
from simulation.models import DialoguePiece, StoredCatalogue, StoredExperiment, StoredRecommender
from simulation.pages.tables import StoredRun
from simulation.reports import results_table
from simulation.stored_catalogues import read_stored, stand_ins, vectors
from tests.codes import refused_naming
from tests.simulation.stored import RULES, stored_experiment, trained_recommender, work_off
from work import execution, models, tasks

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def owner(stored_for_module):
    return User.objects.create_user("rosa")


@pytest.fixture(scope="module")
def team(owner):
    return create_team(name="Lab", owner=owner)


@pytest.fixture(scope="module")
def experiment(team, owner):
    return stored_experiment(team, owner)


@pytest.fixture(scope="module")
def finished(team, owner):
    experiment = stored_experiment(team, owner, name="Finished")
    version = stored_experiments.request_run(experiment=experiment, rules=RULES, actor=None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("simulation.run_pieces.MOST_USERS_A_PIECE", 2)
        work_off()
    version.refresh_from_db()
    return version


@pytest.fixture(scope="module")
def whole(finished):
    return at_once(finished.subject, RULES)


def at_once(experiment, rules):
    plan, catalogue = plans.plan_of(rules), read_stored(experiment.catalogue)
    critic = critics.critic_of(catalogue)
    named = [(plans.named_recommender(one, catalogue, critic), critic) for one in plan.recommenders]
    targets = stored_experiments.targets_of_experiment(experiment, plan)
    return experiments.run_experiment(catalogue, targets, plan.users, named, plan.settings)


def approximately(value):
    return None if value is None else pytest.approx(value, abs=1e-12)


@pytest.mark.slow
def test_pieces_come_to_the_same_rows_as_all_at_once(finished, whole):
    version = finished
    assert version.pieces.count() == 2 * 2 * 3
    names = ("mean", "ci_low", "ci_high", "n_targets", "judged", "turn", "measure")
    expected = [row.record() for row in whole.rows()]
    run = StoredRun(version)
    stored = run.long_rows("turns")
    assert len(stored) == len(expected) == 2 * 5 * 3 * 7
    for row, record in zip(stored, expected, strict=True):
        assert (row.recommender, row.user) == (record["recommender"], record["user"])
        assert {name: getattr(row, name) for name in names} == {
            name: approximately(record[name]) if name != "measure" else record[name]
            for name in names
        }
    for row, one in zip(run.rows("comparisons"), compare_all(whole), strict=True):
        record = one.record()
        assert (row.a, row.b, row.within) == (record["a"], record["b"], record["within"])
        for name in ("delta", "ci_low", "ci_high", "p", "p_adjusted"):
            assert getattr(row, name) == approximately(record[name])
    for row, one in zip(run.rows("causes"), causes(whole), strict=True):
        assert (row.base_target, row.meta_all) == approximately((one.means[0][0], one.means[1][1]))
        assert row.total_delta == approximately(one.total.delta)
        assert row.user_delta + row.qrels_delta == pytest.approx(row.total_delta)
    expected_rows = [
        (one.user, one.choice, one.value, name, mean, one.record()["tau"])
        for one in sensitivity(whole, n_repeats=stored_results.N_REPEATS)
        for name, mean in one.means.items()
    ]
    columns = ("user", "choice", "value", "recommender", "mean", "tau")
    for row, expected_row in zip(run.long_rows("sensitivity"), expected_rows, strict=True):
        values = tuple(getattr(row, name) for name in columns)
        assert values[:4] == expected_row[:4]
        assert values[4:] == tuple(map(approximately, expected_row[4:]))
    for row, one in zip(run.rows("improvements"), results_table(whole).improvements, strict=True):
        assert row.percent_of_base == approximately(one.record()["percent_of_base"])
        assert (row.best_user, row.best_of) == (one.best_user, one.n_rows)
    assert version.record["notes"] == list(whole.notes)
    # Rows are means over seeds and targets, and switches are counted.
    one = {"measure": "nDCG@10", "user": run.user_names[3]}
    for row in run.long_rows("turns", turn=7, **one):
        one["recommender"] = row.recommender
        rows = run.long_rows("seeds", turn=7, **one)
        assert [each.seed for each in rows] == [0, 1]
        assert np.mean([each.mean for each in rows]) == pytest.approx(row.mean)
        values = [each.value for each in run.long_rows("targets", **one)]
        assert np.mean(values) == pytest.approx(row.mean)
        assert len(values) == version.subject.n_targets
    counts = {(row.recommender, row.user): row for row in run.rows("switches")}
    log = whole.logs["embedding"]
    for user, n in zip(log.users, log.n_switches().tolist(), strict=True):
        assert counts["embedding", user.name].n_switches == n
    assert counts["embedding", "SimBase"].n_switches == 0
    assert counts["embedding", "MetaSimTol tolerance 3"].n_switches > 0
    assert {row.n_dialogues for row in counts.values()} == {60}
    assert {row.n_left for row in counts.values()} == {0}


def test_a_long_table_is_read_across_its_parts(experiment, monkeypatch):
    monkeypatch.setattr("results.kinds.ROWS_A_PART", 3)
    rows = [{"user": "ab"[number % 2], "value": number} for number in range(7)]
    parts = dict(kinds.pack_rows("long", {"user": "text", "value": "integer"}, rows))
    computed = kinds.Computed(parts=parts)
    result = create_result(subject=experiment, kind="x", form=1, fingerprint="", computed=computed)
    assert len(parts) == 3
    for after in range(9):
        assert list(kinds.read_rows(result, "long", after=after)) == rows[after:]
    assert list(kinds.read_rows(result, "long", user="a")) == rows[::2]


@pytest.mark.slow
def test_the_same_settings_are_one_version_and_others_another(finished):
    again = stored_experiments.request_run(experiment=finished.subject, rules=RULES, actor=None)
    assert again.pk == finished.pk
    assert not models.Job.objects.unfinished().exists()
    other = stored_experiments.request_run(
        experiment=finished.subject, rules=RULES | {"n_turns": 6}, actor=None
    )
    assert (other.number, other.fingerprint != finished.fingerprint) == (2, True)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_does_no_piece_twice(experiment):
    version = stored_experiments.request_run(experiment=experiment, rules=RULES, actor=None)
    stored_experiments.stop_run(version=version)
    work_off()
    assert not version.pieces.exists()
    stored_experiments.resume_run(version=version, actor=None)
    execution.run_job(models.Job.objects.unfinished().get().pk)
    for job in models.Job.objects.unfinished().of_kind("run_piece")[1:]:
        tasks.stop_job(job=job)
    work_off()
    done = set(version.pieces.exclude(done_at=None).values_list("pk", "done_at"))
    assert len(done) == 1
    stored_experiments.resume_run(version=version, actor=None)
    work_off()
    version.refresh_from_db()
    assert version.finished_at is not None
    assert done <= set(version.pieces.values_list("pk", "done_at"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"users": ["base", "tol:7", "prob:2:0"]}, ["MetaSimTol tolerance 7", "MetaSimProb"]),
        ({"users": ["base", "tol:7,accepts=target"]}, ["SimBase", "MetaSimTol tolerance 7"]),
        # Nothing is lost or gained before the first critique.
        ({"users": ["base", "prob:0:0.5", "prob:0:0.75"], "n_turns": 1}, ["P 0.5", "P 0.75"]),
        ({"relevant_from": 2}, [" 2 ", " 1"]),
        ({"users": ["tol:2", "base"]}, ["SimBase"]),
        ({"users": ["base", "base"]}, ["SimBase"]),
        ({"users": ["base", "tol:x"]}, ["'tol:x'"]),
        ({"measures": ["nDCG@20"]}, ["nDCG@20", " 10 "]),
        ({"measures": ["nonsense"]}, ["nonsense"]),
        ({"measures": [f"P(rel={n})@5" for n in range(2, 33)]}, [" 30 "]),
        ({"recommenders": []}, []),
        ({"recommenders": ["trained:4"]}, ["4"]),
        ({"seeds": list(range(31))}, [" 30 "]),
        ({"seeds": [3, 0, 3]}, [" 3 "]),
        ({"users": ["base", "tol:40000"]}, ["1,000"]),
        ({"n_turns": 51}, [" 50 "]),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_to_change(experiment, changes, named):
    with refused_naming(exceptions.ExperimentUnfit, *named):
        stored_experiments.request_run(experiment=experiment, rules=RULES | changes, actor=None)
    assert not experiment.versions.exists()


def test_recommenders_whose_rows_could_not_be_told_apart_are_refused(experiment):
    trained = {"kind": "gru-sl", "rules": {}, "n_epochs": 1, "finished_at": timezone.now()}
    row = StoredRecommender.objects.create(catalogue=experiment.catalogue, name="random", **trained)
    for specs in (["random", f"trained:{row.pk}"], [f"trained:{row.pk}", f"trained:0{row.pk}"]):
        with refused_naming(exceptions.ExperimentUnfit, " random "):
            stored_experiments.store_run(
                experiment=experiment, rules=RULES | {"recommenders": specs}, actor=None
            )
    assert not experiment.versions.exists()


@pytest.mark.slow
def test_deleting_takes_all_of_it_and_the_log_says_who(finished, team, owner):
    experiment = StoredExperiment.objects.get(pk=finished.subject_id)
    stored_experiments.delete_experiment(experiment=experiment, actor=owner)
    assert not StoredExperiment.objects.filter(name="Finished").exists()
    assert not DialoguePiece.objects.exists()
    assert AuditEntry.objects.order_by("pk").last().action == "experiment.delete"
    Team.objects.get(pk=team.pk).delete()
    assert not StoredCatalogue.objects.exists()


def test_catalogues_are_stored_once_a_team_and_come_back_as_they_were(team):
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(60, 5)).astype(np.float32)
    ids = [f"p{number}" for number in range(60)]
    row = vectors(team=team, name="Mine", ids=ids, embeddings=positions, actor=None)
    assert vectors(team=team, name="Mine", ids=ids, embeddings=positions, actor=None) == row
    read = read_stored(row)
    assert (read.ids, read.source, read.is_stand_in) == (tuple(ids), "Mine", False)
    np.testing.assert_array_equal(read.embeddings, positions)
    stood = read_stored(stand_ins(team=team, ids=ids, actor=None))
    assert (stood.is_stand_in, len(stood)) == (True, 60)


def test_a_training_that_is_requested_twice_is_one(team):
    first = trained_recommender(team, None)
    assert trained_recommender(team, None) == first
    assert models.Job.objects.unfinished().count() == 1
    with refused_naming(exceptions.ExperimentUnfit, "GRU-SL"):
        trained_recommender(team, None, epochs=3)
    assert AuditEntry.objects.filter(action="recommender.train").count() == 1
