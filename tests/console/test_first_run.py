import socket
import sqlite3
import sys
from decimal import Decimal
from itertools import pairwise

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.models import User
from annotation import exceptions, models
from config import samples
from hits.connections import enrol_requester
from hits.exceptions import HitsError
from hits.loop import Marketplace, prepare_database, served_site
from marketplace.models import Requester, WorkerAccount
from metrics.models import ScoringRun
from metrics.score_comparisons import prompt_effects, system_scores
from tests.boto_clients import in_process_client
from tests.processes import run_python

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_site_for_others_is_not_served_to_itself_and_says_how_it_would_be(settings):
    settings.OWN_MACHINE = False
    with pytest.raises(HitsError) as refused, served_site():
        pytest.fail("It was served.")
    assert refused.value.code == "not_local"


@pytest.mark.parametrize("access_key_id", ["", "AKIDOFADATABASETHATISGONE"])
def test_a_new_key_works_and_is_written_down(settings, tmp_path, live_server, access_key_id):
    settings.MARKETPLACE_ACCESS_KEY_ID = settings.MARKETPLACE_SECRET_ACCESS_KEY = access_key_id
    path = tmp_path / ".env"
    key = samples.prepare_key(live_server.url, path)
    assert Decimal(in_process_client(vars(key)).get_account_balance()["AvailableBalance"]) == 1000
    assert path.read_text().splitlines() == [
        f"MARKETPLACE_ACCESS_KEY_ID={key.access_key_id}",
        f"MARKETPLACE_SECRET_ACCESS_KEY={key.secret_access_key}",
    ]
    # From then on it is used.
    settings.MARKETPLACE_ACCESS_KEY_ID = key.access_key_id
    settings.MARKETPLACE_SECRET_ACCESS_KEY = key.secret_access_key
    assert samples.prepare_key(live_server.url, tmp_path / "other.env") == key
    assert not (tmp_path / "other.env").exists()
    assert Requester.objects.count() == 1


def test_a_database_that_is_up_to_date_is_left_alone(django_assert_max_num_queries):
    with django_assert_max_num_queries(5):
        prepare_database()


@pytest.mark.slow
def test_an_empty_embedded_database_gets_its_tables(tmp_path):
    path = tmp_path / "new.sqlite3"
    program = (
        "import django; django.setup(); from hits.loop import prepare_database; prepare_database()"
    )
    assert run_python("-c", program, DATABASE_URL=f"sqlite:///{path}").returncode == 0
    with sqlite3.connect(path) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    database.close()
    assert {"annotation_study", "hits_batch", "metrics_score"} <= tables


def test_samples_have_people_who_sign_in_with_the_latest_password(live_server):
    for password in ("a-long-and-winding-password", "-Eiq_begins-with-a-dash"):
        researcher = samples.prepare_accounts(live_server.url, password)
        assert authenticate(username="researcher", password=password) == researcher
        worker = authenticate(username="worker", password=password)
        assert WorkerAccount.objects.get().user == worker
        assert not researcher.is_superuser
        assert not worker.is_superuser
    assert User.objects.count() == 2
    assert authenticate(username="worker", password="a-long-and-winding-password") is None
    for _ in range(2):
        team = samples.prepare_team(owner=researcher, password="a-sample-password")
    roles = dict(team.memberships.values_list("user__username", "role"))
    assert roles == {"researcher": "owner", "analyst": "analyst"}
    assert User.objects.get(username="analyst").check_password("a-sample-password")


@pytest.mark.slow
def test_the_samples_are_answered_and_shared_and_made_again_stay_as_they_are(live_server):
    key = enrol_requester(site_url=live_server.url, name="Samples", test_funds_usd=Decimal(1000))
    marketplace = Marketplace(live_server.url, key)
    seen = []
    for _ in range(2):
        studies = samples.prepare_samples(marketplace=marketplace, password="a-sample-password")
        assert {study.team.name for study in studies} == {"Sample team"}
        seen.append({study.slug: models.Submission.objects.of(study).count() for study in studies})
    first, again = seen
    assert list(first) == ["sample-rating", "sample-alternatives", "sample-golden-answers"]
    assert [n > 0 for n in first.values()] == [True, True, False]
    assert again == first
    assert models.Study.objects.count() == 3


@pytest.mark.slow
def test_the_sample_answers_are_scored_under_both_prompts_and_judged_by_nobody():
    study = samples.load_sample_answers()
    leaders = ScoringRun.objects.of(study).filter(leader=None).counted()
    assert {(run.metric, run.n_scores, run.n_undefined) for run in leaders} == {
        (name, 120, 0) for name in samples.sample_metrics()
    }
    assert not models.Judgment.objects.exists()
    means = {
        (row["metric"], row["system"], row["condition"]): row["mean"]
        for row in system_scores(study)
    }
    for metric in samples.sample_metrics():
        for system in ("terse", "careful", "cheerful"):
            assert means[metric, system, "enhanced"] > means[metric, system, "standard"]
    overall = {row.metric: row for row in prompt_effects(study) if row.system == ""}
    assert all(overall[metric].wilcoxon_p_holm < 0.01 for metric in samples.sample_metrics())
    # Loading them again changes nothing.
    before = list(ScoringRun.objects.order_by("pk").values_list("pk", "metric", "signature"))
    samples.load_sample_answers()
    after = list(ScoringRun.objects.order_by("pk").values_list("pk", "metric", "signature"))
    assert after == before
    assert models.Study.objects.count() == 1


# What commands and settings say of bad input: exit code 2 and a sentence.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "sqlite:////no/such/folder/x"),
        ("DATABASE_URL", "postgres://ann:secret@127.0.0.1:1/x"),
        ("DATABASE_URL", f"sqlite:///{sys.executable}"),
        ("REDIS_URL", "redis://:secret@127.0.0.1:1/0"),
    ],
)
def test_a_database_or_queue_that_is_away_is_told_in_a_sentence(name, value):
    command = ["migrate"] if name == "DATABASE_URL" else ["run_worker", "--until-empty"]
    process = run_python("manage.py", *command, **{name: value})
    assert process.returncode == 2
    assert name in process.stderr
    assert "Traceback" not in process.stderr
    assert "secret" not in process.stderr


def test_secrets_are_taken_as_they_stand():
    secrets = ("$ecret", "-secret", "s'e\"c#r e$t\\", "'quoted'")
    program = "import config.settings as s; print(s.SECRET_KEY); print(s.SAMPLE_PASSWORD)"
    for one, other in pairwise(secrets):
        process = run_python("-c", program, SECRET_KEY=one, SAMPLE_PASSWORD=other)
        assert process.stdout.splitlines() == [one, other], process.stderr


def refused_serving(*arguments, **options):
    with pytest.raises(CommandError) as refusal:
        call_command("serve", *arguments, **options)
    assert refusal.value.returncode == 2
    return str(refusal.value)


def test_serving_takes_a_free_address_some_threads_and_keys_of_ones_own(settings):
    others = ("localhost:0", "localhost:99999", "localhost:80\u0663")
    for bind in ("8000", ":8000", "localhost", *others):
        assert "--bind" in refused_serving(bind=bind)
    for threads in ("0", "-1", "many"):
        with pytest.raises(CommandError) as refusal:
            call_command("serve", f"--threads={threads}")
        assert "--threads" in str(refusal.value)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bind = f"127.0.0.1:{listener.getsockname()[1]}"
        assert bind in refused_serving(bind=bind)
    settings.USES_PUBLISHED_KEYS = True
    assert "SECRET_KEY" in refused_serving(bind=bind.replace("127.0.0.1", "0.0.0.0"))


def test_a_demonstration_finds_out_before_it_begins_that_it_cannot_write(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(exceptions.FolderUnusable):
        samples.demonstrate(folder=file, crowd=samples.Crowd())
    assert not models.Study.objects.exists()
