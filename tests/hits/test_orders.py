import json
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from annotation.flags import count_judgments_change, store_evidence
from annotation.models import Judgment, Submission
from annotation.protocols.records import Order
from annotation.protocols.versions import document_of_rows, save_draft
from hits import collect, decisions, drafts, models, preflight, progress, studies
from hits.questions import balanced_orders, order_rows, shown_order, task_page
from hits.readiness import Funds
from marketplace.documents.questions import parse_question
from marketplace.hits.assignments import accept_hit, give_up, return_assignment, submit_assignment
from marketplace.models import Assignment as Taken, Hit as MarketplaceHit
from presentation.row_files import row_jsonl
from tests.annotation.preferences import preferences
from tests.annotation.studies import rating_study
from tests.codes import codes_of
from tests.hits.frames import frame_of
from tests.hits.test_quality_checks import CHECKS, checked_study
from tests.hits.test_questions import task_of
from tests.hits.test_worker_pages import displayed_order
from tests.hits.work import answer_to, batch_of, hand_in, hit_on, published_batch
from tests.marketplace.conftest import submit

SYSTEMS = ("alpha", "beta", "gamma", "delta", "epsilon")


def ordered_study(n_candidates: int = 2, policy: str = "latin_square", **fields):
    study = rating_study(systems=SYSTEMS[:n_candidates], **fields)
    document = document_of_rows(study, study.questions.all())
    save_draft(study=study, document=replace(document, order=Order(policy=policy, seed=5)))
    return study


def task_on(hit: models.Hit) -> dict:
    question = MarketplaceHit.objects.get(public_id=hit.hit_id).question
    return task_of(parse_question(question, allow_http=True).content)


def places(orders) -> Counter:
    return Counter((place, key) for order in orders for place, key in enumerate(order))


# The design


@pytest.mark.parametrize("n", range(1, 10))
def test_each_block_of_a_design_is_a_latin_square_and_neighbors_are_balanced(n):
    rows = balanced_orders(n)
    assert len(rows) == (n if n % 2 == 0 else 2 * n)
    for start in range(0, len(rows), n):
        once = Counter((place, key) for place in range(n) for key in range(n))
        assert places(rows[start : start + n]) == once
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) <= 1
    before = Counter((a, b) for row in rows for i, a in enumerate(row) for b in row[i + 1 :])
    assert set(before.values()) <= {len(rows) / 2}


def test_checks_keep_their_places_and_later_slots_continue_the_design():
    is_check = [False, True, False, False, False]
    rows = order_rows(is_check, "seed")
    assert {row[1] for row in rows} == {1}
    assert set(places(rows).values()) == {1, 4}
    assert order_rows(is_check, "seed", 7) == rows[3:] + rows[:3]
    first = {tuple(order_rows(is_check, str(seed))[0]) for seed in range(40)}
    assert first == set(map(tuple, rows))


# At the marketplace


@pytest.mark.parametrize(("n_candidates", "n_workers"), [(2, 4), (4, 8), (3, 6), (5, 5)])
def test_orders_are_balanced_after_returns(client, make_worker, n_candidates, n_workers):
    """And after expirations."""
    study = ordered_study(n_candidates, n_items=2)
    batch = published_batch(study, client, reward_usd="0.01", max_assignments=n_workers)
    chance, workers = random.Random(7), [make_worker(f"w{n}") for n in range(10)]
    for hit in models.Hit.objects.of(batch):
        take_up(hit, workers, chance, n_workers)
        task, taken = task_on(hit), Taken.objects.filter(hit__public_id=hit.hit_id)
        submitted = taken.filter(status="Submitted")
        orders = [shown_order(task, each.public_id, each.slot) for each in submitted]
        assert (len(orders), len(places(orders))) == (n_workers, n_candidates**2)
        assert set(places(orders).values()) == {n_workers // n_candidates}
    assert Taken.objects.filter(status__in=["Returned", "Abandoned"]).count() >= 2


def take_up(hit: models.Hit, workers, chance: random.Random, n_wanted: int) -> None:
    there = MarketplaceHit.objects.get(public_id=hit.hit_id)
    values = {each.key: 50 for each in hit.item.candidates.all()}
    free, open_work = list(workers), []
    n_submitted = 0
    while n_submitted < n_wanted:
        if free and len(open_work) + n_submitted < n_wanted and chance.random() < 0.6:
            open_work.append(accept_hit(worker=free.pop(0), hit=there))
            slots = list(Taken.objects.on(there).holding_slots().values_list("slot", flat=True))
            assert sorted(slots) == sorted(set(slots) & set(range(n_wanted)))
            continue
        if not open_work:
            continue
        work = open_work.pop(chance.randrange(len(open_work)))
        event = chance.choice(("return", "abandon", "submit"))
        if event == "return":
            return_assignment(assignment=work)
        elif event == "abandon":
            give_up(public_id=work.public_id, status="Abandoned")
        else:
            answer = json.dumps(answer_to(hit, values))
            submit_assignment(public_id=work.public_id, fields=[("answer", [answer])])
            n_submitted += 1
            continue
        free.append(work.worker)


def test_a_replacement_of_rejected_work_shows_its_order(client, make_worker):
    hit = hit_on(published_batch(ordered_study(n_items=1), client, max_assignments=2), "d0")
    ann, bob, cat, dan = map(make_worker, ("ann", "bob", "cat", "dan"))
    first, _ = (submit(worker, hit.hit_id, answer="{}") for worker in (ann, bob))
    client.reject_assignment(AssignmentId=first, RequesterFeedback="Not read.")
    client.create_additional_assignments_for_hit(
        HITId=hit.hit_id, NumberOfAdditionalAssignments=2, UniqueRequestToken="more"
    )
    for worker in (cat, dan):
        submit(worker, hit.hit_id, answer="{}")
    slots = Taken.objects.order_by("pk").values_list("worker__user__username", "slot")
    assert dict(slots) == {"ann": 0, "bob": 1, "cat": 0, "dan": 2}


@pytest.mark.django_db
def test_waves_of_an_item_share_one_design():
    batch = batch_of(ordered_study(4, n_items=1), max_assignments=8, wave_size=3)
    orders = []
    for hit in models.Hit.objects.of(batch).order_by("wave"):
        task = task_of(task_page(hit.item, batch.document, first_slot=hit.first_slot))
        n = batch.wave_assignments(hit.wave)
        orders += [shown_order(task, "3X", slot) for slot in range(n)]
    assert (len(orders), set(places(orders).values())) == (8, {2})


@pytest.mark.django_db
def test_quality_checks_do_not_disturb_the_balance():
    batch = batch_of(checked_study(*CHECKS, n_items=10, order=Order(policy="latin_square")))
    n_checked = 0
    for hit in models.Hit.objects.of(batch):
        checks = hit.placed_checks
        task = task_of(task_page(hit.item, batch.document, checks))
        orders = [shown_order(task, "3X", slot) for slot in range(2)]
        own = {each.blind_key for each in hit.item.candidates.all()}
        counts = places(orders)
        assert {n for (_, key), n in counts.items() if key in own} == {1}
        assert {n for (_, key), n in counts.items() if key not in own} <= {2}
        n_checked += bool(checks)
    assert n_checked


# In Python and in the browser


@pytest.mark.browser
@pytest.mark.django_db
@pytest.mark.parametrize(("policy", "n"), [("fixed", 3), ("random", 5), ("latin_square", 3)])
def test_the_page_shows_the_order_that_python_computes(open_page, policy, n):
    html = task_page(ordered_study(n, policy, n_items=1).items.get())
    orders = set()
    with frame_of(html) as frame:
        for number, slot in enumerate((None, 0, 1, 2, 3, 4, 5, 7)):
            assignment = f"3ASSIGN{number}Ä😀"
            suffix = "" if slot is None else f"&assaySlot={slot}"
            page = open_page(frame.address("task", assignment) + suffix)
            expect(page.locator("#progress")).not_to_be_empty()
            shown = displayed_order(page)
            assert shown == shown_order(task_of(html), assignment, slot)
            orders.add(tuple(shown))
            page.close()
    assert len(orders) == {"fixed": 1}.get(policy, len(orders))
    assert len(orders) > 4 or policy == "fixed"


def test_a_worker_who_takes_the_first_shown_of_each_page_is_not_approved_by_rule(client, ann):
    study = preferences(10)
    batch = published_batch(study, client, max_assignments=1)
    for hit in models.Hit.objects.of(batch):
        order = shown_order(task_on(hit), "", slot=0)
        choice = {"candidate": None, "question": "better", "value": order[0], "seconds": 1.2}
        answer = answer_to(hit, {}, judgments=[choice], active_seconds=40)
        submit(ann, hit.hit_id, answer=json.dumps(answer | {"order": order}))
    assert collect.collect_batch(batch=batch, client=client).n_unreadable == 0
    first = Judgment.objects.filter(position=0, value=1)
    # The order of a page does not depend on the systems.
    assert 0 < first.filter(candidate__system="alpha").count() < first.count() == 10
    flags = store_evidence(study).annotator_flags.filter(name="position")
    assert list(flags.values_list("n", "n_hits", "expected")) == [(10, 10, 5)]
    assert drafts.unflagged_assignments(study, hours=0) == []


# Reports


def test_uneven_orders_are_counted_per_item_without_checks_and_rejected_work(client, ann, bob):
    study = ordered_study(2, n_items=3)
    batch = published_batch(study, client, max_assignments=3)
    assert balance_of(batch) == progress.OrderBalance(0, 0)
    straight, turned = ["alpha", "beta"], ["beta", "alpha"]
    shown = {"d0": [straight, straight], "d1": [straight, turned], "d2": [straight]}
    for item, orders in shown.items():
        for worker, order in zip((ann, bob), orders, strict=False):
            hand_in(worker, hit_on(batch, item), {"alpha": 1, "beta": 2}, order=order)
    collect.collect_batch(batch=batch, client=client)
    assert balance_of(batch) == progress.OrderBalance(3, 1)
    of_d1 = Submission.objects.filter(item__key="d1")
    of_d1.update(shown_order=["alpha", "check 1: gold", "beta"])
    count_judgments_change(study_ids=[study.pk])
    assert balance_of(batch) == progress.OrderBalance(3, 2)
    rejected = models.Assignment.objects.filter(submission=of_d1[0])
    decisions.decide(assignments=rejected, decision=decisions.REJECT, feedback="x")
    decisions.send_decisions(batch=batch, client=client)
    assert balance_of(batch) == progress.OrderBalance(3, 1)
    orders = [json.loads(row)["shown_order"] for row in row_jsonl(studies.submission_rows(study))]
    assert orders[0] == '["alpha", "beta"]'


def balance_of(batch: models.Batch) -> progress.OrderBalance | None:
    return progress.batch_report(models.Batch.objects.get(pk=batch.pk)).orders


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["random", "latin_square"])
def test_only_balanced_protocols_have_a_report_of_orders_and_warn_of_a_marketplace(policy):
    draft = batch_of(ordered_study(2, policy, n_items=1))
    assert (progress.batch_report(draft).orders is None) == (policy == "random")
    codes = [] if policy == "random" else ["unbalanced_marketplace"]
    elsewhere, here = (Funds(None, "", True, has_languages=is_here) for is_here in (False, True))
    assert codes_of(preflight.order_findings(draft, elsewhere)) == codes
    assert codes_of(preflight.order_findings(draft, here)) == []
    assert codes_of(preflight.order_findings(draft, None)) == []
