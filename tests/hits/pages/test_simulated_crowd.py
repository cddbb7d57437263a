import re
from datetime import timedelta
from html import escape

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import AuditEntry
from accounts.teams import create_team
from annotation import access, study_facts
from annotation.models import Submission
from hits import connections, endpoints, models, publications
from hits.crowd.simulated import crowd_size
from marketplace.people.enrolment import create_worker
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.work import work_off
from tests.hits.pages.test_home import change_page
from tests.hits.test_publications import plan
from tests.hits.work import hand_in, hit_on, requester_keys
from work.models import Job
from work.tasks import stop_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def batch(live_server, settings, researcher):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    keys = requester_keys()
    team = create_team(name="Lab", owner=researcher)
    key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])
    connection = connections.connect_marketplace(team=team, name="Here", key=key, actor=researcher)
    study = rating_study("mine", owner=researcher)
    access.give_to_team(study=study, team=team, actor=researcher)
    planned = plan(study, connection, max_assignments=2)
    publications.request_publication(batch=planned)
    work_off()
    planned.refresh_from_db()
    return planned


def numbers(text):
    return re.findall(r"\d+", text)


def press(browser, batch):
    preview = browser.get(change_page(batch, "crowd"))
    return browser.post(change_page(batch, "crowd"), dict(preview.context["confirmation"].initial))


@pytest.mark.slow
def test_the_crowd_answers_and_everything_says_that_it_is_simulated(rosa, batch):
    assert change_page(batch, "crowd") in rosa.get(change_page(batch)).content.decode()
    assert numbers(rosa.get(change_page(batch, "crowd")).context["preview"].sentences[0]) == ["3"]
    assert press(rosa, batch).url == change_page(batch)
    assert Job.objects.of_kind("answer_by_crowd").get().is_unfinished
    work_off()
    job = Job.objects.of_kind("answer_by_crowd").get()
    assert (job.state, numbers(job.message)[0]) == ("done", "6")
    simulated = Submission.objects.of(batch.study).values_list("is_simulated", flat=True)
    assert list(simulated) == [True] * 6
    rosa.get(reverse("console:results", args=["mine"]))
    work_off()
    results = rosa.get(reverse("console:results", args=["mine"]))
    assert escape(study_facts.simulation_notice(batch.study)) in results.content.decode()
    entry = AuditEntry.objects.get(action="batch.simulated_crowd")
    assert (entry.actor_name, entry.details) == ("rosa", {"batch": batch.pk, "n_workers": 3})


@pytest.mark.slow
def test_a_crowd_is_one_job_that_goes_on_when_stopped_and_leaves_nothing_open(rosa, batch):
    press(rosa, batch)
    press(rosa, batch)
    job = Job.objects.of_kind("answer_by_crowd").get()
    stop_job(job=job)
    work_off()
    assert not Submission.objects.exists()
    rosa.post(reverse("console:again", args=["mine", job.pk]))
    work_off()
    assert Submission.objects.of(batch.study).count() == 6
    press(rosa, batch)
    work_off()
    assert Submission.objects.of(batch.study).count() == 6
    assert numbers(Job.objects.of_kind("answer_by_crowd").first().message)[0] == "0"


@pytest.mark.slow
def test_answers_of_people_are_named_before_simulated_ones_join_them(rosa, batch):
    worker = create_worker(username="ann", password=PASSWORD)
    hand_in(worker, hit_on(batch, "d0"), {"alpha": 20, "beta": 50})
    before = rosa.get(change_page(batch, "crowd")).context["preview"].sentences
    answer = rosa.post(reverse("console:collect", args=["mine"]))
    assert answer.url == reverse("console:answers", args=["mine"])
    work_off()
    [added] = {*rosa.get(change_page(batch, "crowd")).context["preview"].sentences} - {*before}
    assert numbers(added) == ["1"]


@pytest.mark.slow
def test_it_is_offered_where_the_site_allows_it_and_anybody_can_work(rosa, batch, settings):
    as_it_is = {"is_recruited": False, "reward_usd": batch.reward_usd, "closed_at": None}
    as_it_is |= {"hit_type_id": batch.hit_type_id}
    for changes in (
        {"is_recruited": True, "reward_usd": 0},
        {"closed_at": timezone.now()},
        {"hit_type_id": ""},
    ):
        models.Batch.objects.update(**changes)
        assert_not_offered(rosa, batch)
        models.Batch.objects.update(**as_it_is)
    settings.SIMULATED_CROWD = False
    assert_not_offered(rosa, batch)
    settings.SIMULATED_CROWD = True
    other, here = "https://assay.example.org/requester", settings.MARKETPLACE_ENDPOINT_URL
    settings.MARKETPLACE_ENDPOINT_URL = other
    assert_not_offered(rosa, batch)
    settings.MARKETPLACE_ENDPOINT_URL = here
    models.Connection.objects.update(marketplace="assay.example.org", endpoint_url=other)
    assert_not_offered(rosa, batch)


def assert_not_offered(browser, batch):
    assert change_page(batch, "crowd") not in browser.get(change_page(batch)).content.decode()
    form = {"n_added": 0, "expected_assignments": 0, "expected_usd": "0.00"}
    browser.post(change_page(batch, "crowd"), form)
    assert not Job.objects.of_kind("answer_by_crowd").exists()


def test_an_expired_batch_is_extended_first_and_a_limit_asks_for_more_workers(rosa, batch):
    models.Batch.objects.update(expires_at=timezone.now() - timedelta(minutes=1), max_per_worker=1)
    context = rosa.get(change_page(batch, "crowd")).context
    assert (context["preview"], bool(context["problem"])) == (None, True)
    batch.refresh_from_db()
    assert crowd_size(batch) == 7


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_done_in_a_browser(chromium, live_server, batch, width):
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto(change_page(batch))
        crowd = change_page(batch, "crowd")
        page.locator(f"a[href='{crowd}']").click()
        assert accessibility_problems(page) == []
        page.locator("form button.btn-primary").last.click()
        expect(page.locator("[id^=job-]")).to_be_visible()
        work_off()
        expect(page.locator("[id^=job-].success")).to_contain_text("6")
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
