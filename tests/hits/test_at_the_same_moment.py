import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection

from accounts.models import User
from annotation.models import Judgment, Submission
from hits import collect, decisions, drafts
from hits.models import Assignment, Batch, DraftDecision, Hit
from tests.annotation.studies import rating_study
from tests.boto_clients import in_process_client
from tests.hits.processes import environment, run_at_once
from tests.hits.work import balance_of, hand_in, hits_there, published_batch

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 3


def at_once(call):
    barrier = threading.Barrier(AT_ONCE)

    def run(_):
        with closing(connection):
            barrier.wait(timeout=30)
            return call()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(AT_ONCE)))


@pytest.fixture
def lab(transactional_db, keys):
    client = in_process_client(keys)
    client.get_account_balance()  # loads the site's addresses before threads meet in them
    return client


def test_what_another_run_sent_meanwhile_is_counted_by_that_run_alone(lab, keys, ann):
    batch = published_batch(rating_study(n_items=1), lab, reward_usd="1.00")
    hand_in(ann, Hit.objects.get(), {"alpha": 10, "beta": 20})
    collect.collect_batch(batch=batch, client=lab)
    decisions.decide(assignments=Assignment.objects.all(), decision=Assignment.Decision.APPROVE)
    others, slower = [], in_process_client(keys)

    def be_overtaken(**_):
        others.append(decisions.send_decisions(batch=batch, client=lab))

    slower.meta.events.register_first("before-call.mturk.ApproveAssignment", be_overtaken)
    mine = decisions.send_decisions(batch=batch, client=slower)
    assert [other.n_approved for other in others] == [1]
    assert (mine.n_approved, mine.n_decided_before, mine.rewards_usd) == (0, 0, 0)


def test_a_decision_that_is_pressed_several_times_is_drafted_once(lab, ann):
    rosa = User.objects.create_user("rosa")
    batch = published_batch(rating_study(n_items=1), lab)
    hand_in(ann, Hit.objects.get(), {"alpha": 10, "beta": 20})
    collect.collect_batch(batch=batch, client=lab)
    assignment = Assignment.objects.get()
    at_once(lambda: drafts.draft_decision(reviewer=rosa, assignment=assignment, action="approve"))
    assert DraftDecision.objects.get().action == "approve"


N_ITEMS = 12


@pytest.mark.slow
def test_two_collect_and_two_approve_at_once_and_their_counts_add_up(study, env, client, ann, bob):
    batch = published_batch(study, client, max_assignments=2)
    for worker in (ann, bob):
        for hit in Hit.objects.of(batch):
            hand_in(worker, hit, {"alpha": 10, "beta": 20})
    outputs, _ = twice(env, "collect_study", "ratings")
    assert sum(numbers(r": (\d+)", outputs)) == 2 * N_ITEMS
    assert (Submission.objects.count(), Judgment.objects.count()) == (2 * N_ITEMS, 4 * N_ITEMS)
    outputs, _ = twice(env, "approve_study", "ratings", "--json")
    assert sum(numbers(r'"n_approved": (\d+)', outputs)) == 2 * N_ITEMS
    assert balance_of(client) == ("7.60", "0.00")
    assert set(Assignment.objects.values_list("status", flat=True)) == {"Approved"}


@pytest.fixture
def study(db):
    return rating_study(n_items=N_ITEMS)


@pytest.fixture
def env(live_server, keys):
    return environment(live_server.url, keys)


def twice(env, *command):
    results = run_at_once([list(command)] * 2, env)
    assert [code for code, _, _ in results] == [0, 0], results
    return [output for _, output, _ in results], "".join(errors for _, _, errors in results)


def numbers(pattern, outputs):
    return [int(number) for output in outputs for number in re.findall(pattern, output)]


@pytest.mark.slow
def test_a_study_published_twice_at_once_is_published_once(study, env, client):
    outputs, errors = twice(env, "publish_study", "ratings", "--reward=0.10", "--round=2", "--json")
    batch = Batch.objects.get()
    there = {hit["HITId"] for hit in hits_there(client)}
    assert there == set(Hit.objects.of(batch).values_list("hit_id", flat=True))
    assert (len(there), balance_of(client)) == (N_ITEMS, ("6.40", "3.60"))
    assert sorted(json.loads(output)["hits"] for output in outputs) == [0, N_ITEMS]
    # On a busy machine the first may be done before the second begins, and nobody waits.
    assert re.findall(r"\d+", errors) in ([], [str(batch.pk)])
    assert batch.publisher == ""


@pytest.mark.slow
def test_two_publish_at_different_prices_and_one_is_refused(study, env, client):
    results = run_at_once(
        [["publish_study", "ratings", f"--reward={reward}"] for reward in ("0.10", "0.20")], env
    )
    assert sorted(code for code, _, _ in results) == [0, 2]
    assert "--round 2" in next(errors for code, _, errors in results if code == 2)
    assert len(hits_there(client)) == N_ITEMS
