import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db.models import F

from annotation.flags import count_judgments_change
from annotation.models import Annotator, Submission
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion, Reason, Time
from annotation.protocols.versions import save_draft
from hits import collect, exceptions, plans, publications, wages
from hits.costs import SCHEDULES, estimate, price_items, require_funds
from hits.decisions import decide, send_decisions
from hits.models import Assignment, Batch, Hit
from hits.progress import batch_report, fetch_statement, refresh_statements
from marketplace.hits.assignments import accept_hit, return_assignment
from marketplace.models import Hit as MarketplaceHit
from tests.codes import refused, refused_naming
from tests.hits.wire import unreachable
from tests.hits.work import balance_of, batch_of, hand_in, hit_on, published_batch


def draft(study, reward="0.50", assignments=1, **settings):
    texts = {"title": "T", "description": "D"}
    terms = {"reward_usd": Decimal(reward), "max_assignments": assignments}
    return plans.draft_batch(study=study, **texts, **terms, **settings)


def test_the_local_marketplace_charges_nothing_for_a_draft_or_a_batch(study):
    assert estimate(draft(study, assignments=4)).total_usd == Decimal(6)
    assert not Batch.objects.exists()
    cost = estimate(batch_of(study, reward_usd="0.50", max_assignments=2))
    assert (cost.n_hits, cost.n_assignments) == (3, 6)
    assert (cost.rewards_usd, cost.fees_usd, cost.total_usd) == (3, 0, 3)
    assert re.findall(r"[\d.]+", str(cost)) == ["3", "6", "3.00", "0.00", "3.00"]


@pytest.mark.parametrize(("reward", "assignments"), [("0.07", 3), ("0.13", 10), ("0.01", 1)])
def test_the_estimate_is_what_the_marketplace_holds(study, client, settings, reward, assignments):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    batch = batch_of(study, reward_usd=reward, max_assignments=assignments)
    cost = estimate(batch)
    publications.publish_batch(batch=batch, client=client)
    assert balance_of(client)[1] == f"{cost.total_usd:.2f}"


def test_what_is_published_already_costs_nothing_more(study, client):
    batch = published_batch(study, client, reward_usd="0.50")
    assert estimate(batch).total_usd == 0
    Hit.objects.filter(pk=Hit.objects.of(batch).last().pk).update(hit_id="")
    assert estimate(batch).total_usd == Decimal("0.50")


def test_a_batch_beyond_the_balance_is_refused_with_both_sums(study, wire, client):
    cost = estimate(batch_of(study, reward_usd="3.34"))
    with refused_naming(exceptions.FundsMissing, "$10.02", "$10.00"):
        require_funds(cost=cost, client=client)
    cost = estimate(batch_of(study, reward_usd="3.33", round=2))
    require_funds(cost=cost, client=client)
    assert wire.calls == {"GetAccountBalance": 2}
    wire.fail("GetAccountBalance", unreachable)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        require_funds(cost=cost, client=client)


# Amazon's published rules: 20% of the reward; 20% more where a HIT has ten assignments or more;
# 5% more for Masters; at least $0.01 for an assignment. A fee is rounded to the cent, halves up.
BY_HAND = [
    # reward, HITs, assignments, Masters: rewards, fees
    # A fee of 0.63 x 0.20 = 0.126 is 0.13; 400 x 0.13 = 52.00.
    ("0.63", 400, 1, False, "252.00", "52.00"),
    # 0.01 x 0.20 = 0.002, so the minimum of 0.01; 3 x 100 x 0.01.
    ("0.01", 100, 3, False, "3.00", "3.00"),
    # 0.05 x 0.20 = 0.01: the minimum itself.
    ("0.05", 10, 9, False, "4.50", "0.90"),
    # 0.07 x 0.20 = 0.014, down to 0.01.
    ("0.07", 10, 1, False, "0.70", "0.10"),
    # Ten assignments: 0.50 x 0.40 = 0.20 on each of 100.
    ("0.50", 10, 10, False, "50.00", "20.00"),
    # Masters: 0.50 x 0.25 = 0.125, half a cent up: 0.13 on each of 30.
    ("0.50", 10, 3, True, "15.00", "3.90"),
    # Masters and ten assignments: 1.00 x 0.45 = 0.45 on each of 20.
    ("1.00", 2, 10, True, "20.00", "9.00"),
    # Nothing for the work, and so no fee.
    ("0.00", 7, 2, False, "0.00", "0.00"),
]


def test_the_cost_is_what_the_published_rules_come_to_by_hand(study, settings):
    for reward, n, assignments, masters, rewards, fees in BY_HAND:
        settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
        cost = price_items(draft(study, reward, assignments, needs_masters=masters), n_items=n)
        assert (cost.n_hits, cost.n_assignments) == (n, n * assignments)
        assert (cost.rewards_usd, cost.fees_usd) == (Decimal(rewards), Decimal(fees))


def test_waves_of_nine_avoid_the_fee_for_ten(study, settings):
    for assignments, wave, sizes, fees in (
        # Two tens of 0.40 x 0.50 without waves: 20 x 0.20.
        (20, None, [20], "4.00"),
        # 9 + 9 + 2, each under ten: 20 x 0.10.
        (20, 9, [9, 9, 2], "2.00"),
        (9, 9, [9], "0.90"),
        (10, 5, [5, 5], "1.00"),
        # A wave of all is none.
        (4, 9, [4], "0.40"),
    ):
        settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
        waves = draft(study, assignments=assignments, wave_size=wave)
        assert [waves.wave_assignments(n + 1) for n in range(waves.n_waves)] == sizes
        cost = price_items(waves, n_items=1)
        assert (cost.n_hits, cost.n_assignments) == (len(sizes), assignments)
        assert cost.fees_usd == Decimal(fees)


def test_more_waves_than_anybody_waits_for_are_refused(study):
    with refused(exceptions.BatchUnfit, "settings") as error:
        draft(study, assignments=9_001, wave_size=9)
    assert all(text in str(error.value) for text in ("wave_size: ", "1000"))


def test_a_bonus_costs_a_fifth_and_at_least_a_cent():
    # 0.13 x 0.20 = 0.026, up to 0.03; 2.55 x 0.20 = 0.51.
    fees = {"0.01": "0.01", "0.05": "0.01", "0.13": "0.03", "0.50": "0.10", "2.55": "0.51"}
    for bonus, fee in fees.items():
        assert SCHEDULES["mturk"].bonus_fee_usd(Decimal(bonus)) == Decimal(fee)


NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_page_takes_its_opening_its_words_and_its_answers():
    page = wages.PageSize(
        n_words=238, n_instruction_words=150, n_answers=8, n_ticks=0, n_typed_characters=0
    )
    # 10 s to open, a minute to read, 8 answers of 6 s.
    assert page.seconds(wages.TYPICAL) == pytest.approx(10 + 60 + 48)
    # Who is slow reads the instructions as well: 388 words at 150 a minute, 8 answers of 10 s.
    assert page.seconds(wages.SLOW) == pytest.approx(20 + 60 * 388 / 150 + 80)
    assert page.seconds(wages.QUICK) == pytest.approx(5 + 60 * 238 / 350 + 24)
    page = wages.PageSize(
        n_words=0, n_instruction_words=0, n_answers=0, n_ticks=5, n_typed_characters=100
    )
    assert page.seconds(wages.TYPICAL) == pytest.approx(10 + 5 * 2 + 30)


def test_a_page_is_that_of_the_protocol_that_a_launch_would_freeze(study):
    before = wages.page_size(wages.study_texts(study))
    # Contexts "Context 0" are 9 characters, "alpha on d0" 11 and "beta on d0" 10; the wording.
    n_characters = 9 + 11 + 10 + len(study.questions.get().wording)
    assert before.n_words == pytest.approx(n_characters / 6)
    questions = (
        ProtocolQuestion("fit", "line", "Fit?", low_label="badly", high_label="well"),
        ProtocolQuestion("polite", "yes_no", "Polite?"),
        ProtocolQuestion("pace", "likert", "Pace?", about="item", points=("slow", "fast")),
        ProtocolQuestion("best", "preference", "Best?"),
        ProtocolQuestion("ends", "best_worst", "Ends?"),
        ProtocolQuestion("will_do", "selection", "Will do?"),
    )
    facts = {"title": "Replies", "instructions": "Read. " * 50}
    facts["reason"] = Reason(rule="page", least_length=40)
    save_draft(study=study, document=ProtocolDocument(questions, **facts))
    study.refresh_from_db()
    page = wages.page_size(wages.study_texts(study))
    # Of two responses: two lines, two times yes or no; one Likert point of the item, one best,
    # and a best with a worst; and two products to tick or to leave.
    assert (before.n_answers, page.n_answers, page.n_ticks) == (2, 4 + 1 + 1 + 2, 2)
    assert (page.n_instruction_words, page.n_typed_characters) == (50, 40)
    n_characters = sum(len(each.wording) for each in questions)
    assert page.n_words == pytest.approx((9 + 11 + 10 + n_characters) / 6)
    assert wages.duration_of(study).typical_seconds == pytest.approx(page.seconds(wages.TYPICAL))


def test_what_the_protocol_estimates_is_the_one_estimate(study):
    assert not wages.duration_of(study).is_of_protocol
    line = ProtocolQuestion("fit", "line", "Fit?", low_label="badly", high_label="well")
    document = ProtocolDocument(questions=(line,), title="Replies", time=Time(estimate_seconds=300))
    save_draft(study=study, document=document)
    study.refresh_from_db()
    duration = wages.duration_of(study)
    assert duration.is_of_protocol
    assert duration.typical_seconds == pytest.approx(300)
    page = wages.page_size(wages.study_texts(study))
    scale = 300 / page.seconds(wages.TYPICAL)
    assert duration.quick_seconds == pytest.approx(scale * page.seconds(wages.QUICK))
    assert duration.slow_seconds == pytest.approx(scale * page.seconds(wages.SLOW))


def test_a_reward_is_an_hourly_wage_and_back():
    duration = wages.Duration(typical_seconds=160, quick_seconds=120, slow_seconds=204)
    wage = wages.wage_of(Decimal("0.56"), duration)
    # 0.56 x 3600 / 160, / 204 and / 120.
    amounts = (wage.typical_usd, wage.least_usd, wage.most_usd)
    assert amounts == (Decimal("12.60"), Decimal("9.88"), Decimal("16.80"))
    # 12 x 160 / 3600 = 0.5333, up to the cent.
    assert wages.reward_for(Decimal(12), duration) == Decimal("0.54")
    assert wages.wage_of(Decimal("0.54"), duration).typical_usd >= 12


def add_submissions(study, *seconds, **fields):
    items = list(study.items.all())
    for number, each in enumerate(seconds):
        annotator = Annotator.objects.create(study=study, pseudonym=f"A{number}")
        facts = {"item": items[number % len(items)], "submitted_at": NOON, "seconds": each}
        Submission.objects.create(annotator=annotator, **facts, **fields)
    count_judgments_change(study_ids=[study.pk])
    study.refresh_from_db()


def test_measured_times_take_the_estimates_place(study):
    assert wages.measured_duration([60.0] * 4) is None
    add_submissions(study, *[1] * 5, status=Submission.Status.REJECTED)
    assert not wages.duration_of(study).is_measured
    Submission.objects.all().delete()
    Annotator.objects.all().delete()
    add_submissions(study, *range(60, 111, 10))
    duration = wages.duration_of(study)
    # 60, 70, 80, 90, 100, 110
    assert (duration.n, duration.typical_seconds) == (6, 85)
    assert duration.quick_seconds < 70 < 100 < duration.slow_seconds


@pytest.mark.parametrize(
    ("seconds", "fields"),
    [(0.11, {}), (1.9, {}), (3.0, {"active_seconds": 60.0}), (60.0, {"is_simulated": True})],
    ids=["at once", "in a second", "in less than the page says", "simulated"],
)
def test_time_that_is_nobodys_measures_nothing(study, seconds, fields):
    add_submissions(study, *[seconds] * 6, **fields)
    assert not wages.duration_of(study).is_measured
    assert wages.n_implausible(study) == 6
    # The page's own count may be longer by what a marketplace rounds.
    Submission.objects.update(seconds=60, active_seconds=61, is_simulated=False)
    count_judgments_change(study_ids=[study.pk])
    study.refresh_from_db()
    assert (wages.duration_of(study).typical_seconds, wages.n_implausible(study)) == (60, 0)


pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"alpha": 70, "beta": 20}


@pytest.fixture
def batch(site, settings, study, client):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    return published_batch(study, client, max_assignments=2, reward_usd="0.63")


@pytest.fixture
def batch_with_work(batch, client, ann, bob):
    """Ann does all three items and bob one, which he first gave back; one of ann's is rejected."""
    for hit in Hit.objects.of(batch):
        hand_in(ann, hit, VALUES)
    hit = MarketplaceHit.objects.get(public_id=hit_on(batch, "d1").hit_id)
    return_assignment(assignment=accept_hit(worker=bob, hit=hit))
    hand_in(bob, hit_on(batch, "d1"), VALUES)
    collect.collect_batch(batch=batch, client=client)
    rows = Assignment.objects.of(batch)
    of_first = rows.filter(hit=hit_on(batch, "d0"))
    decide(assignments=of_first, decision=Assignment.Decision.REJECT, feedback="Not read.")
    decide(assignments=rows.filter(hit=hit_on(batch, "d1")), decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch, client=client)
    return batch


def test_a_batch_nobody_worked_on_has_spent_nothing_and_knows_no_wage(batch):
    report = batch_report(batch)
    assert (report.n_published, report.n_collected, report.spend.total_usd) == (3, 0, 0)
    assert report.seconds is report.hourly_usd is report.statement is report.difference_usd is None


@pytest.mark.slow
def test_our_record_and_the_marketplaces_agree_to_the_cent(batch_with_work, client):
    batch = batch_with_work
    fetch_statement(batch=batch)
    report = batch_report(batch)
    assert (report.spend.rewards_usd, report.spend.fees_usd) == (Decimal("1.26"), Decimal("0.26"))
    assert report.difference_usd == 0
    # Of six assignments at 0.76 two are paid and one was rejected.
    assert report.statement.held_usd == 3 * Decimal("0.76")
    assert (report.n_collected, report.n_approved, report.n_rejected) == (4, 2, 1)
    assert (report.n_undecided, report.n_workers, report.dropout_share) == (1, 2, 1 / 5)
    # What we have not heard of yet is a difference.
    assignment = Assignment.objects.of(batch).get(status="Submitted")
    client.approve_assignment(AssignmentId=assignment.assignment_id)
    fetch_statement(batch=batch)
    batch.refresh_from_db()
    assert batch_report(batch).difference_usd == Decimal("0.76")
    collect.collect_batch(batch=batch, client=client)
    assert batch_report(batch).difference_usd == 0


@pytest.mark.slow
def test_a_statement_that_payments_left_behind_is_fetched_anew(batch_with_work, client):
    fetch_statement(batch=batch_with_work)
    rows = Assignment.objects.of(batch_with_work).filter(status="Submitted")
    decide(assignments=rows, decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch_with_work, client=client)
    assert batch_report(batch_with_work).difference_usd == Decimal("-0.76")
    refresh_statements(study=batch_with_work.study)
    batch_with_work.refresh_from_db()
    assert batch_report(batch_with_work).difference_usd == 0


@pytest.mark.slow
def test_the_wage_is_the_median_of_what_an_hour_of_each_assignment_paid(batch_with_work):
    def report_anew():
        count_judgments_change(study_ids=[batch_with_work.study_id])
        batch_with_work.study.refresh_from_db()
        return batch_report(batch_with_work)

    for number, submission in enumerate(Submission.objects.order_by("pk"), start=1):
        Submission.objects.filter(pk=submission.pk).update(
            seconds=60 * number, accepted_at=F("submitted_at") - timedelta(minutes=number)
        )
    report = report_anew()
    assert report.seconds.median == 150
    # 0.63 for 1, 2, 3, 4 minutes: 37.80, 18.90, 12.60, 9.45 dollars an hour
    assert report.hourly_usd.median == pytest.approx((18.90 + 12.60) / 2)
    # Time that is too short to be true makes no wage.
    Submission.objects.update(seconds=0.11)
    report = report_anew()
    assert (report.hourly_usd, report.n_implausible) == (None, 4)
    assert report.seconds.median == pytest.approx(0.11)
    Submission.objects.filter(pk=Submission.objects.order_by("pk").first().pk).update(seconds=60)
    report = report_anew()
    # $0.63 for a minute
    assert (report.hourly_usd.median, report.hourly_usd.n) == (pytest.approx(37.80), 1)
    assert report.n_implausible == 3
