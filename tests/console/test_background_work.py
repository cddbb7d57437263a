import json
import re
from datetime import timedelta

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks_db.models import DBTaskResult

from annotation.models import Candidate
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import SCORE, request_study_job
from metrics import models, scorer_options
from metrics.pages.scoring import lacking_models
from results.models import Result
from tests.annotation.studies import add_candidates, rate, rating_study
from tests.codes import message_codes
from tests.console import filled, pages
from tests.console.work import QUEUED, work_off
from work.execution import claim, run_job
from work.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(researcher):
    return rating_study(owner=researcher)


def request_scores(browser, **form):
    answer = browser.post(reverse("console:score", args=["ratings"]), form, follow=True)
    assert answer.redirect_chain == [(reverse("console:validation", args=["ratings"]), 302)]
    return answer


def poll(browser, work, *, by_htmx=True):
    headers = {"HX-Request": "true"} if by_htmx else {}
    answer = browser.get(reverse("console:work", args=["ratings", work.pk]), headers=headers)
    assert answer.status_code == 200
    return answer


def post(browser, action, work):
    """Post an action of a job; return the job after it."""
    answer = browser.post(reverse(f"console:{action}", args=["ratings", work.pk]), follow=True)
    assert answer.status_code == 200
    work.refresh_from_db()
    return work


def test_asking_for_scores_leaves_them_to_the_background_worker(rosa, study):
    answer = request_scores(rosa, metric=["rouge1", "chrf", "bleurt"])
    work = Job.objects.get()
    assert (work.state, work.arguments["names"]) == (Job.State.QUEUED, ["rouge1", "chrf"])
    assert not models.Score.objects.exists()
    [result] = DBTaskResult.objects.all()
    assert result.status == TaskResultStatus.READY
    # The page polls it.
    where = reverse("console:work", args=["ratings", work.pk])
    assert f'hx-get="{where}" hx-trigger="every 1s"' in answer.content.decode()
    answer = poll(rosa, work)
    assert f'hx-get="{where}"' in answer.content.decode()
    assert "HX-Refresh" not in answer
    assert "no-store" in answer["Cache-Control"]
    # Asking while the same waits doubles nothing.
    request_scores(rosa, metric=["rouge1", "chrf"])
    assert (Job.objects.count(), DBTaskResult.objects.count()) == (1, 1)
    request_scores(rosa, metric="chrf")
    assert (Job.objects.count(), DBTaskResult.objects.count()) == (2, 2)
    assert post(rosa, "stop", work).state == Job.State.STOPPED
    assert run_job(work.pk) == "not queued"
    assert not models.Score.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_background_worker_scores_what_was_asked_for(rosa, study):
    request_scores(rosa, metric=["rouge1", "chrf"])
    work_off()
    work = Job.objects.get(kind=SCORE)
    assert work.state == Job.State.DONE
    assert {"rouge1", "chrf"} <= set(models.ScoringRun.objects.values_list("metric", flat=True))
    assert models.Score.objects.filter(run__metric="chrf").count() == 6
    ended = poll(rosa, work)
    assert ended["HX-Refresh"] == "true"
    assert (f'id="job-{work.pk}"' in ended.content.decode(), b"hx-get" in ended.content) == (
        True,
        False,
    )
    assert work.message in pages.words_of(poll(rosa, work, by_htmx=False).content.decode())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["agreement", "validation"])
def test_a_result_is_computed_by_the_background_worker_and_not_by_the_page(rosa, study, name):
    rate(study, "Ann", "d0", {"alpha": 1, "beta": 2})
    rate(study, "Bob", "d0", {"alpha": 1, "beta": 3})
    filled.add_scores(study)
    where = reverse(f"console:{name}", args=["ratings"])
    for _ in range(2):
        assert rosa.get(where).context["job"].state == Job.State.QUEUED
    assert not Result.objects.exists()
    assert DBTaskResult.objects.count() == 1
    work_off()
    page = rosa.get(where)
    assert page.context["job"] is None
    assert "appropriateness" in page.content.decode()
    assert DBTaskResult.objects.count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["agreement.json", "validation.json"])
def test_a_download_that_is_not_computed_yet_is_json_with_its_state(rosa, researcher, name):
    study = filled.scored_study(owner=researcher)
    where = reverse("console:download", args=[study.slug, name])
    answer = rosa.get(where)
    assert (answer.status_code, answer["Content-Type"]) == (202, "application/json")
    assert (answer.json()["state"], answer["Retry-After"]) == ("queued", "2")
    # Nobody is led to a file that is not there.
    page = rosa.get(reverse("console:downloads", args=[study.slug])).content.decode()
    assert f'href="{where}"' not in page
    work_off()
    assert "rows" in json.loads(rosa.get(where).getvalue()) or name == "agreement.json"
    page = rosa.get(reverse("console:downloads", args=[study.slug])).content.decode()
    assert f'href="{where}"' in page


def test_a_download_that_cannot_be_computed_is_json_with_the_reason(rosa, researcher):
    study = filled.scored_study(owner=researcher)
    where = reverse("console:download", args=[study.slug, "agreement.json"])
    rosa.get(where)
    Job.objects.update(state=Job.State.FAILED, message="No memory is left.")
    answer = rosa.get(where)
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/json")
    assert answer.json() == {"state": "failed", "detail": "No memory is left."}


@pytest.mark.usefixtures("_immediate_tasks")
def test_asking_twice_scores_once_and_a_metric_without_references_says_what_it_lacks(rosa, study):
    request_scores(rosa, metric="rouge1")
    before = list(models.Score.objects.order_by("pk").values_list())
    request_scores(rosa, metric="rouge1")
    assert list(models.Score.objects.order_by("pk").values_list()) == before

    def boxes():
        page = rosa.get(reverse("console:validation", args=[study.slug])).content.decode()
        rouge = re.search(r'<input[^>]* value="rougeL"[^>]*>', page)[0]
        return "disabled" in rouge, 'id="no-references"' in page

    study.items.update(reference="A reference.")
    assert boxes() == (False, False)
    study.items.update(reference="")
    assert boxes() == (True, True)
    n = Candidate.objects.filter(item__study=study).count()
    request_scores(rosa, metric="rougeL")
    assert models.Score.objects.filter(run__metric="rougeL", value=None).count() == n


def test_no_known_metric_scores_nothing_and_running_work_tells_how_far_it_is(rosa, study):
    for form in ({}, {"metric": "bleurt"}, {"metric": "judge"}, {"metric": "<script>"}):
        assert message_codes(request_scores(rosa, **form)) == ["no_metric"]
    assert not Job.objects.exists()
    work = request_study_job(study=study, kind=SCORE, names=["rouge1"])
    claim(work.pk)
    now = timezone.now()
    Job.objects.update(
        n_done=30,
        n_total=90,
        phase="rouge1",
        started_at=now - timedelta(seconds=60),
        progress_at=now,
    )
    page = poll(rosa, work).content.decode()
    text = pages.words_of(page)
    assert "rouge1" in text
    assert re.findall(r"[\d.]+\d|\d", text)[-5:] == ["30", "90", "0.5", "2", "0"]
    assert '<progress max="90" value="30"' in page
    assert reverse("console:stop", args=["ratings", work.pk]) in page


@pytest.fixture
def _no_models(settings, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for known in (scorer_options.has_model, lacking_models):
        known.cache_clear()
    yield
    for known in (scorer_options.has_model, lacking_models):
        known.cache_clear()


@pytest.mark.usefixtures("_immediate_tasks", "_no_models")
def test_a_metric_whose_model_is_not_here_is_marked_and_cannot_be_chosen(rosa, study):
    study.items.update(reference="A reference.")
    page = rosa.get(reverse("console:validation", args=[study.slug])).content.decode()
    for name, is_disabled in (("bertscore", True), ("use", True), ("length", False)):
        box = re.search(rf'<input[^>]* value="{name}"[^>]*>', page)[0]
        assert ("disabled" in box) is is_disabled
    assert "bertscore, use, style" in pages.words_of(page[page.index('id="lacking-models"') :])
    assert "/docs/scoring/#models" in page
    request_scores(rosa, metric=["use", "length"])
    assert Job.objects.get(kind=SCORE).arguments["names"] == ["length"]
    where = reverse("console:scoring", args=[study.slug]) + "?metric=nll"
    for answer in (rosa.get(where), rosa.post(where, {})):
        assert answer.context["lacks_model"]
    assert not models.ScoringRequest.objects.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("_no_models")
@pytest.mark.django_db(transaction=True)
def test_of_metrics_asked_for_at_once_each_succeeds_or_fails_by_itself(rosa, study):
    study.items.update(reference="A reference.")
    names = ["rouge1", "bertscore", "use", "length"]
    work = request_study_job(study=study, kind=SCORE, names=names)
    work_off()
    work.refresh_from_db()
    assert work.state == Job.State.DONE
    scored = models.ScoringRun.objects.values_list("metric", flat=True)
    assert {one.partition("_")[0] for one in scored} == {"length", "rouge1"}
    assert all(name in work.message for name in names)
    assert "local_files_only" not in work.message
    alone = request_study_job(study=study, kind=SCORE, names=["use"])
    work_off()
    alone.refresh_from_db()
    assert alone.state == Job.State.FAILED


@pytest.mark.usefixtures("_immediate_tasks")
def test_work_that_fails_says_why_and_can_be_tried_again(rosa, researcher):
    study = rating_study(owner=researcher, n_items=0)
    page = pages.words_of(request_scores(rosa, metric="rouge1").content.decode())
    work = Job.objects.get()
    assert (work.state, work.message in page) == (Job.State.FAILED, True)
    assert not models.ScoringRun.objects.exists()
    overview = rosa.get(reverse("console:study", args=["ratings"])).content.decode()
    assert work.message[:40] in pages.words_of(overview)
    add_candidates(study.items.create(key="d0", reference="r"), ["alpha"], are_systems=True)
    assert post(rosa, "again", work).state == Job.State.DONE
    assert Job.objects.filter(kind=SCORE).count() == 1


@pytest.mark.usefixtures("_immediate_tasks")
def test_a_result_that_cannot_be_computed_is_not_tried_again_by_itself(rosa, study):
    rate(study, "Ann", "d0", {"alpha": 1, "beta": 2})
    where = reverse("console:agreement", args=["ratings"])
    study.refresh_from_db()
    with override_settings(TASKS=QUEUED):
        find_study_kind("agreement").request(study, None)
    Job.objects.update(state=Job.State.FAILED, message="It broke.")
    for _ in range(2):
        assert "It broke." in pages.words_of(rosa.get(where).content.decode())
    assert Job.objects.count() == 1
    assert post(rosa, "again", Job.objects.get()).state == Job.State.DONE
    assert Result.objects.filter(kind="agreement").exists()
