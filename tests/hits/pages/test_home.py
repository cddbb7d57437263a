import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import product

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts import roles, teams
from accounts.models import AuditEntry, Team, User
from annotation import flags, models
from annotation.protocols.records import Order
from annotation.protocols.versions import document_of_rows, freeze, save_draft
from annotation.result_kinds.base import find_study_kind
from hits.costs import set_budget
from hits.models import Appeal, Assignment, Batch, Connection, Hit
from hits.pages.desk import FIRST_ROWS
from tests.annotation.studies import rate, rated_study, rating_study
from tests.codes import codes_on
from tests.console.filled import add_assignment, add_batch
from tests.hits.samples import lab_study
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    return lab_study(researcher, "mine", title="Mine")


@pytest.fixture
def batch(study):
    batch = add_batch(study, n_published=3, max_assignments=2)
    Batch.objects.update(publishing_started_at=timezone.now())
    Connection.objects.update(fees="mturk")
    return batch


def home(browser, **query):
    return browser.get(reverse("console:studies"), query)


def decisions(browser):
    return home(browser).context["decisions"]


def judge_all(study, batch, **times):
    for number, hit in enumerate(Hit.objects.of(batch)):
        for name in ("Ann", "Bob"):
            submission = rate(study, name, f"d{number}", {"alpha": 1, "beta": 2})
            models.Submission.objects.filter(pk=submission.pk).update(**times)
            mine = Assignment.objects.filter(pk=add_assignment(hit, name.upper()).pk)
            mine.update(submission=submission, status=Assignment.Status.APPROVED)


def add_failed_job(study, finished_at, message=""):
    facts = {"kind": "score", "subject": f"study:{study.pk}", "title": "Scoring rouge1"}
    facts |= {"state": Job.State.FAILED, "finished_at": finished_at, "message": message}
    return Job.objects.create(**facts)


def test_home_puts_what_passes_by_itself_first(rosa, batch):
    add_assignment(Hit.objects.of(batch).first())
    Batch.objects.update(auto_approval_delay_seconds=3600, expires_at=timezone.now())
    first, second = decisions(rosa)
    assert (first.tone, first.url) == ("error", reverse("console:review", args=["mine"]))
    assert (first.code, second.code) == ("review", "repost")
    assert ("1" in first.action, "$0.12" in first.note) == (True, True)
    assert (second.tone, second.url) == ("warning", change_page(batch, "repost"))
    assert ("5" in second.action, "$0.60" in second.note) == (True, True)


def test_an_analyst_is_asked_for_nothing_and_sees_no_money(study, batch, signed_in, researcher):
    add_assignment(Hit.objects.of(batch).first())
    Batch.objects.update(expires_at=timezone.now())
    carl = User.objects.create_user("carla")
    teams.set_role(team=study.team, user=carl, role=roles.Role.ANALYST, actor=researcher)
    answer = home(signed_in(carl))
    assert (answer.context["decisions"], "role" in codes_on(answer.text)) == ([], True)
    add_assignment(Hit.objects.of(batch).last(), problem="It names no item.")
    overview = signed_in(carl).get(reverse("console:study", args=[study.slug]))
    assert (overview.context["decisions"], "role" in codes_on(overview.text)) == ([], True)
    assert [row["spent_usd"] for row in answer.context["rows"]] == [None]
    assert "0.10" not in signed_in(carl).get(change_page(batch)).content.decode()
    teams.set_role(team=study.team, user=carl, role=roles.Role.AUDITOR, actor=researcher)
    assert "0.10" in signed_in(carl).get(change_page(batch)).content.decode()


def test_more_studies_cost_home_no_more_queries(rosa, researcher, django_assert_max_num_queries):
    for number in range(12):
        add_batch(rating_study(f"s{number}", owner=researcher), n_published=2)
    with django_assert_max_num_queries(15):
        rosa.get(reverse("console:studies"))


def test_home_shows_how_far_the_first_system_of_a_study_leads(rosa, researcher):
    study = rating_study("mine", owner=researcher, n_items=6)
    for number, name in product(range(6), ("Ann", "Bob")):
        rate(study, name, f"d{number}", {"alpha": 2 + number % 2, "beta": 4 + number % 2})
    assert [row["lead"] for row in home(rosa).context["rows"]] == [None]
    find_study_kind("results").compute_now(study)
    [lead] = [row["lead"] for row in home(rosa).context["rows"]]
    assert "beta" in lead.text
    zero, first = (float(x.rstrip("%")) for x in (lead.axis.x(0.0), lead.span.low))
    assert zero < first <= float(lead.span.value.rstrip("%"))


def test_review_counts_every_rejected_assignment_beyond_the_rows_it_lists(rosa, study, batch):
    hit = Hit.objects.of(batch).first()
    for number in range(FIRST_ROWS.stop + 2):
        add_assignment(hit, f"A{number}")
    Assignment.objects.update(status=Assignment.Status.REJECTED)
    context = rosa.get(reverse("console:review", args=[study.slug]), {"show": "rejected"}).context
    assert context["n_queue"] == FIRST_ROWS.stop + 2
    assert len(context["queue"]) + context["n_more"] == context["n_queue"]


def test_appeals_and_answers_that_could_not_be_read_say_what_they_cost(rosa, batch):
    rejected = add_assignment(Hit.objects.of(batch).first())
    Assignment.objects.update(status=Assignment.Status.REJECTED)
    Appeal.objects.create(assignment=rejected, reason="I read it all.", appealed_at=timezone.now())
    first = decisions(rosa)[0]
    assert (first.tone, first.code, "$0.12" in first.note) == ("error", "appeal", True)
    Appeal.objects.update(answer="We did.")
    assert decisions(rosa) == []
    add_assignment(Hit.objects.of(batch).last(), problem="It names no item.")
    Batch.objects.update(auto_approval_delay_seconds=30 * 24 * 3600)
    Assignment.objects.update(submitted_at=timezone.now())
    [unread] = [one for one in decisions(rosa) if one.code == "unreadable"]
    assert (unread.tone, re.findall(r"\d+", unread.message)) == ("warning", ["1"])
    assert "$0.12" in unread.note


def test_pay_under_the_floor_names_the_reward_that_meets_it(rosa, study, batch):
    Team.objects.update(wage_floor_usd=Decimal("12.00"))
    judge_all(study, batch, seconds=60)
    [low] = decisions(rosa)
    # 10 cents a minute are $6 an hour; $12 an hour are 20 cents a minute.
    assert re.findall(r"\$?\d+(?:\.\d+)?", low.message) == [str(batch.pk), "$6.00", "$12.00"]
    assert re.findall(r"\$?\d+(?:\.\d+)?", low.note) == ["6", "6", "1", "0", "$0.20"]
    assert (low.code, low.url) == ("pay", reverse("console:launch", args=["mine"]))
    Batch.objects.update(closed_at=timezone.now())
    assert decisions(rosa) == []


@pytest.mark.usefixtures("batch")
def test_a_budget_nearly_spent_is_said_to_who_may_raise_it(rosa, study, researcher, signed_in):
    team = study.team
    # Three HITs of two assignments at 12 cents with the fee.
    set_budget(team=team, cap_usd=Decimal("0.80"), actor=researcher)
    assert decisions(rosa) == []
    set_budget(team=team, cap_usd=Decimal("0.75"), actor=researcher)
    set_budget(study=study, cap_usd=Decimal("0.72"), actor=researcher)
    budgets = [one for one in decisions(rosa) if one.code == "budget"]
    amounts = {one.about: re.findall(r"\$[\d.]+\d", one.message) for one in budgets}
    assert amounts == {"Lab": ["$0.03", "$0.75"], "Mine": ["$0.00", "$0.72"]}
    [room] = home(rosa).context["team_rooms"]
    assert (room.committed_usd, room.budget.cap_usd) == (Decimal("0.72"), Decimal("0.75"))
    carl = User.objects.create_user("carla")
    teams.set_role(team=team, user=carl, role=roles.Role.RESEARCHER, actor=researcher)
    assert decisions(signed_in(carl)) == []


def test_the_budget_of_a_study_of_ones_own_is_said_of_that_study(rosa, researcher):
    rating_study("first", owner=researcher, title="First")
    second = rating_study("second", owner=researcher, title="Second")
    set_budget(study=second, cap_usd=Decimal("0.95"), actor=researcher)
    batch = add_batch(second, n_published=3, max_assignments=3)
    Batch.objects.filter(pk=batch.pk).update(publishing_started_at=timezone.now())
    (one,) = [one for one in decisions(rosa) if one.code == "budget"]
    assert (one.about, one.url) == ("Second", reverse("console:launch", args=["second"]))


def test_a_failed_job_is_said_until_it_is_requested_again(rosa, study, settings):
    job = add_failed_job(study, timezone.now(), "There is no model.")
    [failed] = decisions(rosa)
    assert (failed.code, failed.note) == ("failed_job", "There is no model.")
    assert "Scoring rouge1" in failed.message
    # One that stays as a record, long after its time.
    Job.objects.update(finished_at=timezone.now() - timedelta(days=settings.WORK_KEEP_DAYS + 1))
    assert decisions(rosa) == []
    settings.WORK_KEEP_DAYS = 0  # for good
    assert len(decisions(rosa)) == 1
    Job.objects.create(kind=job.kind, subject=job.subject, title=job.title)
    assert decisions(rosa) == []


def disputed_study(name, owner):
    study = rated_study(name, owner=owner, level="ordinal")
    study.questions.update(scale_max=100)
    for annotator in ("Cat", "Dan"):
        for item in ("d0", "d1", "d2"):
            rate(study, annotator, item, {"alpha": 99, "beta": 0})
    find_study_kind("agreement").compute_now(study)
    return study


def test_what_time_decides_comes_by_its_date_before_what_no_time_decides(rosa, researcher):
    now = timezone.now()
    old = now - timedelta(days=90)
    disputed_study("apart", researcher)
    models.Study.objects.update(created_at=old)
    for name, days in {"later": 20, "next": 5, "tomorrow": 1}.items():
        batch = add_batch(rating_study(name, owner=researcher, title=name), n_published=1)
        add_assignment(Hit.objects.of(batch).first(), problem="" if days > 1 else "No item.")
        Batch.objects.filter(pk=batch.pk).update(
            publishing_started_at=now, auto_approval_delay_seconds=days * 24 * 3600
        )
    Assignment.objects.update(submitted_at=now)
    add_failed_job(models.Study.objects.get(slug="next"), now - timedelta(days=9))
    *_others, apart = said = decisions(rosa)
    assert "6" in apart.action
    assert apart.url == reverse("console:adjudication", args=["apart"])
    rows = [(one.code, one.tone, one.about) for one in said]
    decisive = (("error", "tomorrow"), ("warning", "next"), ("warning", "later"))
    assert rows[:3] == [("review", *row) for row in decisive]
    assert {row[0] for row in rows[3:-1]} == {"failed_job", "unreadable"}
    assert rows[-1][:2] == ("disputes", "info")


def test_a_study_is_archived_and_led_to_and_taken_out_again(rosa, batch):
    add_assignment(Hit.objects.of(batch).first())
    models.Study.objects.update(archived_at=timezone.now())
    answer = home(rosa)
    assert (answer.context["decisions"], answer.context["rows"]) == ([], [])
    assert "?archived=" in answer.content.decode()
    [row] = home(rosa, archived="").context["rows"]
    assert row["study"].slug == "mine"
    models.Study.objects.update(archived_at=None)
    Assignment.objects.all().delete()
    address = reverse("console:archive", args=["mine"])
    assert len(rosa.get(address).context["reasons"]) == 1
    rosa.post(address)
    assert not models.Study.objects.archived().exists()
    Batch.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert not rosa.get(address).context["reasons"]
    rosa.post(address)
    assert models.Study.objects.archived().exists()
    restore = reverse("console:restore", args=["mine"])
    overview = rosa.get(reverse("console:study", args=["mine"])).content.decode()
    assert f'action="{restore}"' in overview
    rosa.post(restore)
    assert not models.Study.objects.archived().exists()


# A batch's page and its changes, as people of different roles meet them.


def change_page(batch, name=""):
    if name:
        return reverse("console:batch-change", args=[batch.study.slug, batch.pk, name])
    return reverse("console:batch", args=[batch.study.slug, batch.pk])


def confirmation(answer):
    return dict(answer.context["confirmation"].initial)


def test_a_change_says_first_what_it_costs_and_then_does_it(rosa, batch):
    preview = rosa.get(change_page(batch, "more"), {"n_more": 2})
    assert preview.context["preview"].cost.total_usd == Decimal("0.72")
    form = {"n_more": 2} | confirmation(preview)
    answer = rosa.post(change_page(batch, "more"), form)
    assert (answer.status_code, answer.url) == (302, change_page(batch))
    rosa.post(change_page(batch, "more"), form)  # pressed twice, it changes once
    assert set(Hit.objects.values_list("max_assignments", flat=True)) == {4}
    assert Job.objects.of_kind("apply_changes").count() == 1
    assert AuditEntry.objects.filter(action="batch.add_assignments", actor_name="rosa").exists()
    # A number that cannot be leads to no confirmation.
    for n_more in ("", "0", "-1", "1001", "x", "8"):
        answer = rosa.get(change_page(batch, "more"), {"n_more": n_more})
        assert answer.context["confirmation"] is None
        assert answer.context["form"].errors or answer.context["problem"]


def test_money_that_leaves_the_site_is_typed(rosa, batch, researcher):
    elsewhere = Connection.objects.create(
        team=batch.study.team, name="There", marketplace="mturk.example.org", fees="mturk"
    )
    Batch.objects.update(connection=elsewhere)
    form = {"n_more": 1} | confirmation(rosa.get(change_page(batch, "more"), {"n_more": 1}))
    for amount in ("", "0.35", "36"):
        rosa.post(change_page(batch, "more"), form | {"typed_usd": amount})
    assert not Hit.objects.exclude(max_assignments=None).exists()
    rosa.post(change_page(batch, "more"), form | {"typed_usd": "$0.36"})
    assert set(Hit.objects.values_list("max_assignments", flat=True)) == {3}


def test_a_batch_is_extended_expired_and_closed_once_confirmed(rosa, batch):
    at = (timezone.now() + timedelta(days=30)).replace(second=0, microsecond=0)
    form = {"expires_at": f"{at:%Y-%m-%dT%H:%M}"}
    preview = rosa.get(change_page(batch, "extend"), form)
    rosa.post(change_page(batch, "extend"), form | confirmation(preview))
    batch.refresh_from_db()
    assert batch.expires_at == at
    for name in ("expire", "close"):
        rosa.post(change_page(batch, name), confirmation(rosa.get(change_page(batch, name))))
        batch.refresh_from_db()
        assert batch.expires_at <= timezone.now()
        assert bool(batch.closed_at) == (name == "close")
    assert rosa.get(change_page(batch)).context["changes"] == {}


def test_an_unknown_change_and_anothers_batch_are_not_there(rosa, batch, colleague, signed_in):
    assert rosa.get(change_page(batch, "explode")).status_code == 404
    assert signed_in(colleague).get(change_page(batch)).status_code == 404
    other = rating_study("other", owner=batch.study.owner)
    assert rosa.get(reverse("console:batch", args=[other.slug, batch.pk])).status_code == 404


def test_pay_an_hour_is_made_of_no_time_that_is_nobodys_and_says_so(rosa, study, batch):
    """As `replay_crowd` leaves it: everything at once, with the time that a person would take
    invented in the answer."""
    judge_all(study, batch, seconds=0.11, active_seconds=55)
    report = rosa.get(change_page(batch)).context["report"]
    assert (report.hourly_usd, report.n_implausible) == (None, 6)
    study.team.wage_floor_usd = Decimal("12.00")
    study.team.save()
    assert [one.message for one in decisions(rosa) if one.code == "pay"] == []
    models.Submission.objects.filter(annotator__pseudonym="Ann").update(seconds=60)
    flags.count_judgments_change(study_ids=[study.pk])
    report = rosa.get(change_page(batch)).context["report"]
    assert (report.hourly_usd.median, report.n_implausible) == (Decimal("6.00"), 3)


def test_the_page_of_a_balanced_batch_reports_uneven_orders(rosa, study):
    document = document_of_rows(study, study.questions.all())
    save_draft(study=study, document=replace(document, order=Order(policy="latin_square")))
    batch = add_batch(study, n_published=3)
    Batch.objects.filter(pk=batch.pk).update(protocol=freeze(study=study))
    for person, orders in (("Ann", ("alpha", "beta")), ("Bob", ("beta", "alpha"))):
        assignment = add_assignment(batch.hits.first(), person)
        assignment.submission = rate(study, person, "d0", dict.fromkeys(orders, 50))
        assignment.save()
    assert "even_orders" in codes_on(rosa.get(change_page(batch)).text)
    models.Submission.objects.update(shown_order=["alpha", "beta"])
    flags.count_judgments_change(study_ids=[study.pk])
    assert "uneven_orders" in codes_on(rosa.get(change_page(batch)).text)
