"""A batch's page and its changes, as people of different roles meet them."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.models import Submission
from annotation.protocols.records import Order
from annotation.protocols.studies import document_of_rows
from annotation.protocols.versions import freeze, save_draft
from annotation.versions import count_judgments_change
from hits.models import Assignment, Batch, Connection, Hit
from tests.annotation.studies import rate, rating_study
from tests.codes import codes_on
from tests.console.filled import add_assignment, add_batch
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    study = rating_study("mine", owner=researcher)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    return study


@pytest.fixture
def batch(study):
    batch = add_batch(study, n_published=3, max_assignments=2)
    Batch.objects.update(publishing_started_at=timezone.now())
    return batch


def page(batch, name=""):
    if name:
        return reverse("console:batch-change", args=[batch.study.slug, batch.pk, name])
    return reverse("console:batch", args=[batch.study.slug, batch.pk])


def confirmation(answer):
    form = answer.context["confirmation"]
    return dict(form.initial)


def test_a_change_says_first_what_it_costs_and_then_does_it(rosa, batch):
    preview = rosa.get(page(batch, "more"), {"n_more": 2})
    assert preview.context["preview"].cost.total_usd == Decimal("0.60")
    form = {"n_more": 2} | confirmation(preview)
    answer = rosa.post(page(batch, "more"), form)
    assert (answer.status_code, answer.url) == (302, page(batch))
    assert set(Hit.objects.values_list("max_assignments", flat=True)) == {4}
    assert Job.objects.of_kind("apply_changes").count() == 1
    assert AuditEntry.objects.filter(action="batch.add_assignments", actor_name="rosa").exists()


def test_the_button_pressed_twice_changes_once(rosa, batch):
    preview = rosa.get(page(batch, "more"), {"n_more": 1})
    form = {"n_more": 1} | confirmation(preview)
    rosa.post(page(batch, "more"), form)
    rosa.post(page(batch, "more"), form)
    assert set(Hit.objects.values_list("max_assignments", flat=True)) == {3}


@pytest.mark.parametrize("n_more", ["", "0", "-1", "1001", "x", "8"])
def test_a_number_that_cannot_be_leads_to_no_confirmation(rosa, batch, n_more):
    answer = rosa.get(page(batch, "more"), {"n_more": n_more})
    assert answer.context["confirmation"] is None
    assert answer.context["form"].errors or answer.context["problem"]


def test_money_that_leaves_the_site_is_typed(rosa, batch, researcher):
    elsewhere = Connection.objects.create(
        team=batch.study.team, name="There", marketplace="mturk.example.org", fees="mturk"
    )
    Batch.objects.update(connection=elsewhere)
    preview = rosa.get(page(batch, "more"), {"n_more": 1})
    form = {"n_more": 1} | confirmation(preview)
    for amount in ("", "0.35", "36"):
        rosa.post(page(batch, "more"), form | {"typed_usd": amount})
    assert not Hit.objects.exclude(max_assignments=None).exists()
    rosa.post(page(batch, "more"), form | {"typed_usd": "$0.36"})
    assert set(Hit.objects.values_list("max_assignments", flat=True)) == {3}


@pytest.mark.parametrize("name", ["expire", "close"])
def test_an_end_is_confirmed_and_then_stands(rosa, batch, name):
    preview = rosa.get(page(batch, name))
    rosa.post(page(batch, name), confirmation(preview))
    batch.refresh_from_db()
    assert batch.expires_at <= timezone.now()
    assert bool(batch.closed_at) == (name == "close")


def test_an_extension_is_until_the_time_that_was_typed(rosa, batch):
    at = (timezone.now() + timedelta(days=30)).replace(second=0, microsecond=0)
    form = {"expires_at": f"{at:%Y-%m-%dT%H:%M}"}
    preview = rosa.get(page(batch, "extend"), form)
    rosa.post(page(batch, "extend"), form | confirmation(preview))
    batch.refresh_from_db()
    assert batch.expires_at == at


def test_a_closed_batch_offers_no_change(rosa, batch):
    Batch.objects.update(closed_at=timezone.now())
    assert rosa.get(page(batch)).context["changes"] == {}


@pytest.mark.parametrize(
    ("role", "status"),
    [
        (Role.MANAGER, 200),
        (Role.RESEARCHER, 200),
        (Role.ADJUDICATOR, 403),
        (Role.ANALYST, 403),
        (Role.AUDITOR, 403),
    ],
)
def test_only_who_may_spend_changes_a_batch(study, batch, signed_in, researcher, role, status):
    carl = User.objects.create_user("carla")
    set_role(team=study.team, user=carl, role=role, actor=researcher)
    browser = signed_in(carl)
    assert browser.get(page(batch)).status_code == 200
    assert browser.get(page(batch, "close")).status_code == status


def test_an_analyst_sees_no_money(study, batch, signed_in, researcher):
    carl = User.objects.create_user("carla")
    set_role(team=study.team, user=carl, role=Role.ANALYST, actor=researcher)
    assert "0.10" not in signed_in(carl).get(page(batch)).content.decode()
    set_role(team=study.team, user=carl, role=Role.AUDITOR, actor=researcher)
    assert "0.10" in signed_in(carl).get(page(batch)).content.decode()


def test_an_unknown_change_and_anothers_batch_are_not_there(rosa, batch, colleague, signed_in):
    assert rosa.get(page(batch, "explode")).status_code == 404
    assert signed_in(colleague).get(page(batch)).status_code == 404
    other = rating_study("other", owner=batch.study.owner)
    assert rosa.get(reverse("console:batch", args=[other.slug, batch.pk])).status_code == 404


def test_pay_an_hour_is_made_of_no_time_that_is_nobodys_and_says_so(rosa, study, batch):
    """As `replay_crowd` leaves it: everything at once, with the time that a person would take
    invented in the answer."""
    for number, hit in enumerate(Hit.objects.of(batch)):
        for name in ("Ann", "Bob"):
            submission = rate(study, name, f"d{number}", {"alpha": 1, "beta": 2})
            Submission.objects.filter(pk=submission.pk).update(seconds=0.11, active_seconds=55)
            assignment = add_assignment(hit, name.upper())
            Assignment.objects.filter(pk=assignment.pk).update(submission=submission)
    report = rosa.get(page(batch)).context["report"]
    assert (report.hourly_usd, report.n_implausible) == (None, 6)
    study.team.wage_floor_usd = Decimal("12.00")
    study.team.save()
    assert [one.fact for one in home_decisions(rosa) if one.code == "pay"] == []
    Submission.objects.filter(annotator__pseudonym="Ann").update(seconds=60)
    report = rosa.get(page(batch)).context["report"]
    assert (report.hourly_usd.median, report.n_implausible) == (Decimal("6.00"), 3)


def home_decisions(browser):
    return browser.get(reverse("console:studies")).context["decisions"]


def test_the_page_of_a_balanced_batch_reports_uneven_orders(rosa, study):
    document = document_of_rows(study, study.questions.all())
    save_draft(study=study, document=replace(document, order=Order(policy="latin_square")))
    batch = add_batch(study, n_published=3)
    Batch.objects.filter(pk=batch.pk).update(protocol=freeze(study=study))
    for person, orders in (("Ann", ("alpha", "beta")), ("Bob", ("beta", "alpha"))):
        assignment = add_assignment(batch.hits.first(), person)
        assignment.submission = rate(study, person, "d0", dict.fromkeys(orders, 50))
        assignment.save()
    assert "even_orders" in codes_on(rosa.get(page(batch)).text)
    Submission.objects.update(shown_order=["alpha", "beta"])
    count_judgments_change(study_ids=[study.pk])
    assert "uneven_orders" in codes_on(rosa.get(page(batch)).text)
