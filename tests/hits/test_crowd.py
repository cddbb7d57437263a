"""The crowd at the worker site, over HTTP; its answers without."""

import json
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from accounts.models import User
from annotation.frames import judgment_frame
from annotation.models import Candidate, Item, Study, Submission, new_blind_key
from annotation.readers.drafts import JudgmentDraft, SubmissionDraft
from hits.answers import read_answer
from hits.collect import collect_batch
from hits.crowd.pages import Page
from hits.crowd.replay import (
    RecordedAnswers,
    crowd_names,
    replay_group,
    replay_plan,
)
from hits.crowd.simulated import SimulatedAnswers
from hits.crowd.worker import CrowdWorker
from hits.exceptions import CrowdStuck
from hits.exports import submission_rows
from hits.models import Hit
from hits.questions import task_page
from marketplace.models import Assignment as MarketplaceAssignment
from marketplace.models import WorkerAccount
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import refused
from tests.hits.test_answers import xml_of
from tests.hits.work import hit_on, hits_there, published_batch
from tests.marketplace.conftest import HIT, submit

SECRET = "known to no worker"


def test_a_worker_signs_up_once_logs_in_ever_after_and_has_an_account_alone(live_server, keys):
    for _ in range(2):
        crowd_worker(live_server)
    assert User.objects.filter(username="ann").count() == WorkerAccount.objects.count() == 1
    with refused(CrowdStuck, "login_refused"):
        CrowdWorker(live_server.url, "ann", secret="another").arrive()
    with refused(CrowdStuck, "bad_status"):
        CrowdWorker(f"{live_server.url}/nowhere", "ann", secret=SECRET).arrive()
    with refused(CrowdStuck, "no_site"):
        CrowdWorker("http://127.0.0.1:9", "ann", secret=SECRET).arrive()


def crowd_worker(site, name="ann") -> CrowdWorker:
    worker = CrowdWorker(site.url, name, secret=SECRET)
    worker.arrive()
    return worker


def simulate(batch, site, *, n_workers=2, seed=7):
    return replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(n_workers, seed=seed),
        source=SimulatedAnswers(batch.study, seed=seed),
        site_url=site.url,
        total=0,
    )


def record(item: str, values: dict[str, float], *, who: str, **fields) -> SubmissionDraft:
    judgments = tuple(
        JudgmentDraft(candidate=key, question="appropriateness", value=value)
        for key, value in values.items()
    )
    return SubmissionDraft(item=item, judgments=judgments, raw="", line=2, identity=who, **fields)


def replay(batch, site, drafts):
    source = RecordedAnswers(batch.study, drafts)
    return replay_plan(plan=source.plan(batch), source=source, site_url=site.url)


def values_by_item(study):
    frame = judgment_frame(study)
    return sorted(frame[["item", "candidate", "value"]].itertuples(index=False, name=None))


def task_of(item) -> dict:
    return json.loads(Page(task_page(item)).task or "null")


# At the worker site


def test_every_worker_does_every_hit_once_and_a_second_run_does_nothing(live_server, study, client):
    batch = published_batch(study, client, max_assignments=3)
    assert simulate(batch, live_server).n_submitted == 6
    again = simulate(batch, live_server)
    assert (again.n_workers, again.n_submitted) == (2, 0)
    takers = MarketplaceAssignment.objects.values_list("hit", "worker")
    assert len(takers) == len(set(takers)) == 6
    assert all(hit["NumberOfAssignmentsAvailable"] == 1 for hit in hits_there(client))
    # More workers than places share them.
    assert simulate(batch, live_server, n_workers=4).n_submitted == 3
    assert simulate(batch, live_server, n_workers=4).n_submitted == 0


def test_a_worker_cannot_take_a_hit_again_by_its_address(live_server, study, client):
    batch = published_batch(study, client, max_assignments=3)
    hit = hit_on(batch, "d0")
    worker = crowd_worker(live_server)
    task = worker.accept(hit.hit_id)
    assert task.hit_id == hit.hit_id
    # One that stopped between accepting and submitting goes on.
    worker = crowd_worker(live_server)
    assert worker.accept(hit.hit_id).assignment_id == task.assignment_id
    unknown = type(task)("3NOSUCHASSIGNMENT", task.hit_id, task.submit_url, task.page)
    with refused(CrowdStuck, "bad_status"):
        worker.submit(unknown, {})
    worker.submit(task, SimulatedAnswers(study, seed=1).answer("ann", task.page))
    assert worker.accept(hit.hit_id) is None
    assert MarketplaceAssignment.objects.count() == 1


def test_recorded_answers_come_back_exactly(live_server, study, client):
    study.justification_min_length = 5
    study.save()
    Candidate.objects.filter(item__study=study, item__key="d0").update(text="The same words.")
    batch = published_batch(study, client, max_assignments=2)
    why = {"justification": "Därum: “ja” & <b>"}
    drafts = [
        record("d0", {"alpha": 12.5, "beta": 87}, who="A1", **why),
        record("d0", {"alpha": 86, "beta": 12}, who="A2", **why),
        record("d2", {"alpha": 0, "beta": 100}, who="A1", **why),
        record("elsewhere", {"alpha": 0, "beta": 100}, who="A1", **why),
    ]
    result = replay(batch, live_server, drafts)
    assert (result.n_workers, result.n_submitted, result.n_gone) == (2, 3, 0)
    again = replay(batch, live_server, drafts)
    assert (again.n_submitted, again.n_gone) == (0, 3)
    assert collect_batch(batch=batch, client=client).n_unreadable == 0
    values = [(d.item, j.candidate, j.value) for d in drafts[:3] for j in d.judgments]
    assert values_by_item(study) == sorted(values)
    by_annotator = judgment_frame(study).groupby("annotator", observed=True)["item"].nunique()
    assert sorted(by_annotator) == [1, 2]
    reasons = set(Submission.objects.values_list("justification", flat=True))
    assert reasons == set(why.values())
    # Only those of simulated workers are known as simulated.
    simulate(batch, live_server, n_workers=1)
    collect_batch(batch=batch, client=client)
    exported = submission_rows(study)
    column = list(exported.columns).index("simulated")
    marks = [False, False, False, True, True]
    assert sorted(row[column] for row in exported.rows) == marks
    assert sorted(Submission.objects.values_list("is_simulated", flat=True)) == marks


def test_a_hit_that_is_gone_is_passed_over(live_server, study, client, bob):
    batch = published_batch(study, client)
    client.update_expiration_for_hit(HITId=hit_on(batch, "d0").hit_id, ExpireAt=0)
    submit(bob, hit_on(batch, "d1").hit_id)
    Hit.objects.filter(pk=hit_on(batch, "d2").pk).update(hit_id="3NOSUCHHIT")
    drafts = [record(f"d{n}", {"alpha": 1, "beta": 2}, who="A1") for n in range(3)]
    result = replay(batch, live_server, drafts)
    assert (result.n_submitted, result.n_gone) == (0, 3)
    assert "3NOSUCHHIT" in result.refusal
    assert result.refusal in str(result)
    # Another requester's page stops the crowd.
    with refused(CrowdStuck, "foreign_page"):
        crowd_worker(live_server).accept(client.create_hit(**HIT)["HIT"]["HITId"])


def test_a_record_without_an_answer_or_a_judgment_is_told(study):
    first, second = (task_of(study.items.get(key=key)) for key in ("d0", "d1"))
    source = RecordedAnswers(study, [record("d0", {"alpha": 1}, who="A1")])
    for code, who, page in (
        ("no_answer", "A2", first), ("no_answer", "A1", second), ("no_judgment", "A1", first)
    ):  # fmt: skip
        with refused(CrowdStuck, code):
            source.answer(who, page)


class _ClosesTheSecond(BaseHTTPRequestHandler):
    """Closes the second connection without an answer, and knows no page."""

    n_asked = 0

    def do_GET(self):
        type(self).n_asked += 1
        if self.n_asked == 2:
            self.close_connection = True
            return
        self.send_response(503 if self.n_asked == 3 else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words):
        pass


def test_a_site_that_begins_anew_stops_nobody_whom_it_has_answered(monkeypatch):
    monkeypatch.setattr("hits.crowd.worker.PAUSES_SECONDS", (0.01,) * 4)
    with ThreadingHTTPServer(("127.0.0.1", 0), _ClosesTheSecond) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        worker = CrowdWorker(f"http://127.0.0.1:{server.server_port}", "ann", secret=SECRET)
        assert worker.accept("H1") is None
        assert worker.accept("H1") is None
        server.shutdown()
    assert _ClosesTheSecond.n_asked == 4


# What it answers


def test_a_seed_makes_the_same_answers_and_another_seed_others(study):
    pages = [task_of(item) for item in study.items.all()]

    def answers(seed):
        source = SimulatedAnswers(study, seed=seed)
        return [source.answer(name, page) for name in ("one", "two") for page in pages]

    def values(answers):
        return [sorted(judgment["value"] for judgment in one["judgments"]) for one in answers]

    first = answers(1)
    assert answers(1) == first
    assert values(first) != values(answers(2))
    # An answer does not depend on what was answered before.
    assert SimulatedAnswers(study, seed=1).answer("two", pages[-1]) == first[-1]
    for candidate in Candidate.objects.all():
        Candidate.objects.filter(pk=candidate.pk).update(blind_key=new_blind_key())
    pages = [task_of(item) for item in Item.objects.all()]
    assert values(answers(1)) == values(first)  # another import of the study is the same study


def test_simulated_annotators_take_time_and_give_reasons_only_where_asked(study):
    answer = SimulatedAnswers(study, seed=1).answer("one", task_of(study.items.get(key="d0")))
    times = [judgment["seconds"] for judgment in answer["judgments"]]
    assert all(seconds > 0 for seconds in times)
    assert answer["active_seconds"] == sum(times)
    assert answer["justification"] == ""
    with_reasons = alternatives_study(justification_min_length=100)
    page = task_of(with_reasons.items.first())
    assert len(SimulatedAnswers(with_reasons, seed=1).answer("one", page)["justification"]) >= 100


def test_a_candidate_like_the_reference_is_rated_higher(study):
    item = study.items.get(key="d0")
    item.candidates.filter(key="alpha").update(text="nothing alike")
    item.candidates.filter(key="beta").update(text="Reference 0")
    blind = dict(item.candidates.values_list("key", "blind_key"))
    source = SimulatedAnswers(study, seed=3)
    for number in range(20):
        judgments = source.answer(f"worker-{number}", task_of(item))["judgments"]
        values = {judgment["candidate"]: judgment["value"] for judgment in judgments}
        assert values[blind["beta"]] > values[blind["alpha"]]


def scales(kind: str) -> Study:
    """A study of each kind of page, and scales on which rounding would go wrong."""
    if kind == "alternatives":
        return alternatives_study(justification_min_length=300)
    study = rating_study(questions=("a", "b"), justification_min_length=0)
    if kind == "categories":
        study.questions.update(categories=["bad", "fair", "good"])
    if kind == "fractional":
        study.questions.update(scale_min=0.5, scale_max=2.7)
    if kind == "below zero":
        study.questions.update(scale_min=-3, scale_max=3)
    return study


@pytest.mark.parametrize(
    "kind", ["alternatives", "rating", "categories", "fractional", "below zero"]
)
def test_simulated_answers_are_valid_for_every_kind_of_page(db, kind):
    study = scales(kind)
    source = SimulatedAnswers(study, seed=5, noise=2)
    values = defaultdict(set)
    for item in study.items.all():
        for number in range(5):
            given = json.dumps(source.answer(f"w{number}", task_of(item)))
            for judgment in read_answer(xml_of({"answer": given}), item).judgments:
                values[judgment.question.name].add(judgment.value)
    assert len(values) == study.questions.count()
    assert all(len(each) > 1 for each in values.values())


def test_a_pages_forms_frame_and_task_are_read():
    page = Page(
        '<form class="search"><input name="q"></form>'
        '<form class="big accept" action="/go/"><input type="hidden" name="token" value="a&amp;b">'
        '<input type="submit" name="send" value="x"></form><input name="outside" value="1">'
        '<iframe id="ad" src="/ad"></iframe><iframe id="task" src="/task?a=1&amp;b=2"></iframe>'
        '<script>var x = "{}";</script>'
        '<script id="task" type="application/json">{"a": "<b>"}</script>'
    )
    form = page.form("accept")
    assert (form.action, form.fields) == ("/go/", {"token": "a&b"})
    assert page.form("missing") is None
    assert page.frame == "/task?a=1&b=2"
    assert json.loads(page.task) == {"a": "<b>"}
