"""A simulated crowd answers a launched batch: asked for on its page, at work in the background."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import AuditEntry
from accounts.teams import create_team
from annotation.access import give_to_team
from annotation.models import Submission
from hits.connections import connect_marketplace
from hits.crowd.batches import crowd_size
from hits.endpoints import AccessKey
from hits.models import Batch, Connection
from hits.publications import request_publication
from marketplace.people.enrolment import create_worker
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.pages import words_of
from tests.hits.test_publications import plan
from tests.hits.work import hand_in, hit_on, requester_keys
from work.models import Job
from work.request import stop_job

pytestmark = pytest.mark.django_db(transaction=True)
OFFER = "Have a simulated crowd answer…"


@pytest.fixture
def batch(live_server, settings, researcher):
    """A published batch at this site's own marketplace: three items, of two workers each."""
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    keys = requester_keys()
    team = create_team(name="Lab", owner=researcher)
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    connection = connect_marketplace(team=team, name="Here", key=key, actor=researcher)
    study = rating_study("mine", owner=researcher)
    give_to_team(study=study, team=team, actor=researcher)
    planned = plan(study, connection, max_assignments=2)
    request_publication(batch=planned)
    work_off()
    planned.refresh_from_db()
    return planned


def work_off():
    call_command("run_worker", until_empty=True)


def page_of(batch):
    return reverse("console:batch", args=[batch.study.slug, batch.pk])


def crowd_page(batch):
    return reverse("console:batch-change", args=[batch.study.slug, batch.pk, "crowd"])


def press(browser, batch):
    """Read what it does, and confirm it."""
    preview = browser.get(crowd_page(batch))
    return browser.post(crowd_page(batch), dict(preview.context["confirmation"].initial))


def test_the_crowd_answers_and_everything_says_that_it_is_simulated(rosa, batch):
    assert OFFER in rosa.get(page_of(batch)).content.decode()
    preview = words_of(rosa.get(crowd_page(batch)).content.decode())
    assert "3 simulated workers sign up at the worker site" in preview
    assert press(rosa, batch).url == page_of(batch)
    assert Job.objects.of_kind("answer_by_crowd").get().is_unfinished
    work_off()
    words = words_of(rosa.get(page_of(batch)).content.decode())
    assert "6 assignments, which are marked as simulated" in words
    simulated = Submission.objects.of(batch.study).values_list("is_simulated", flat=True)
    assert list(simulated) == [True] * 6
    rosa.get(reverse("console:results", args=["mine"]))
    work_off()
    results = rosa.get(reverse("console:results", args=["mine"]))
    assert "Every answer of this study is simulated" in results.content.decode()
    entry = AuditEntry.objects.get(action="batch.simulated_crowd")
    assert (entry.actor_name, entry.details) == ("rosa", {"batch": batch.pk, "n_workers": 3})


def test_pressed_twice_it_is_one_job_and_afterwards_nothing_is_open(rosa, batch):
    press(rosa, batch)
    press(rosa, batch)
    assert Job.objects.of_kind("answer_by_crowd").count() == 1
    work_off()
    press(rosa, batch)
    work_off()
    assert Submission.objects.of(batch.study).count() == 6
    assert "0 assignments" in Job.objects.of_kind("answer_by_crowd").first().message


def test_answers_of_people_are_named_before_simulated_ones_join_them(rosa, batch):
    worker = create_worker(username="ann", password=PASSWORD)
    hand_in(worker, hit_on(batch, "d0"), {"alpha": 20, "beta": 50})
    assert "people" not in words_of(rosa.get(crowd_page(batch)).content.decode()).split("own:")[1]
    rosa.post(reverse("console:collect", args=["mine"]))
    work_off()
    words = words_of(rosa.get(crowd_page(batch)).content.decode())
    assert "1 answer of this study is a person's: results would be of both." in words


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("SIMULATED_CROWD", False),
        ("MARKETPLACE_ENDPOINT_URL", "https://assay.example.org/requester"),
    ],
)
def test_it_is_offered_where_the_site_allows_it_and_has_the_marketplace(
    rosa, batch, settings, setting, value
):
    setattr(settings, setting, value)
    assert_not_offered(rosa, batch)


@pytest.mark.parametrize(
    "changes",
    [{"is_recruited": True, "reward_usd": 0}, {"closed_at": timezone.now()}, {"hit_type_id": ""}],
)
def test_it_is_offered_for_hits_that_whoever_signs_up_can_accept(rosa, batch, changes):
    Batch.objects.update(**changes)
    assert_not_offered(rosa, batch)


def test_no_crowd_is_sent_to_anothers_marketplace(rosa, batch):
    Connection.objects.update(
        marketplace="mturk.example.org", endpoint_url="https://mturk.example.org"
    )
    assert_not_offered(rosa, batch)


def assert_not_offered(browser, batch):
    assert OFFER not in browser.get(page_of(batch)).content.decode()
    form = {"n_added": 0, "expected_assignments": 0, "expected_usd": "0.00"}
    browser.post(crowd_page(batch), form)
    assert not Job.objects.of_kind("answer_by_crowd").exists()


def test_of_an_expired_batch_it_says_what_to_do_first(rosa, batch):
    Batch.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert "extend it first" in rosa.get(crowd_page(batch)).content.decode()


def test_a_crowd_that_was_stopped_goes_on_where_it_was(rosa, batch):
    press(rosa, batch)
    job = Job.objects.of_kind("answer_by_crowd").get()
    stop_job(job=job)
    work_off()
    assert not Submission.objects.exists()
    rosa.post(reverse("console:again", args=["mine", job.pk]))
    work_off()
    assert Submission.objects.of(batch.study).count() == 6


def test_a_limit_for_each_worker_asks_for_more_of_them(batch):
    Batch.objects.update(max_per_worker=1)
    batch.refresh_from_db()
    assert crowd_size(batch) == 7


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_done_in_a_browser(chromium, live_server, batch, width):
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto(page_of(batch))
        page.get_by_role("link", name=OFFER).click()
        assert accessibility_problems(page) == []
        page.get_by_role("button", name="Have them answer").click()
        expect(page.get_by_text("waiting for its turn")).to_be_visible()
        work_off()
        expect(page.get_by_text("6 assignments, which are marked as simulated")).to_be_visible()
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
