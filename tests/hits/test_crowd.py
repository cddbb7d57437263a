import json

import pytest

from accounts.models import User
from annotation.frames import judgment_frame
from annotation.models import Candidate, Item, PlacedCheck, Submission, new_blind_key, uploads
from annotation.protocols import documents, templates
from annotation.readers.drafts import JudgmentDraft, SubmissionDraft
from hits import collect, exceptions, models, studies
from hits.answers import Answer, read_answer
from hits.crowd.replay import (
    CrowdWorker,
    Page,
    RecordedAnswers,
    crowd_names,
    replay_group,
    replay_plan,
)
from hits.crowd.simulated import FAULTS, PASTED, FaultyAnswers, SimulatedAnswers, faulty_names
from hits.questions import task_page
from marketplace.models import Assignment as MarketplaceAssignment, WorkerAccount
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import refused
from tests.hits.test_answers import EVERY_KIND, item_of, values_of, xml_of
from tests.hits.test_quality_checks import CHECKS, checked_study
from tests.hits.work import batch_of, hit_on, hits_there, published_batch

SECRET = "known to no worker"


def test_a_worker_signs_up_once_logs_in_ever_after_and_has_an_account_alone(live_server, keys):
    for _ in range(2):
        crowd_worker(live_server)
    assert User.objects.filter(username="ann").count() == WorkerAccount.objects.count() == 1
    with refused(exceptions.CrowdStuck, "login_refused"):
        CrowdWorker(live_server.url, "ann", secret="another").arrive()
    with refused(exceptions.CrowdStuck, "bad_status"):
        CrowdWorker(f"{live_server.url}/nowhere", "ann", secret=SECRET).arrive()
    with refused(exceptions.CrowdStuck, "no_site"):
        CrowdWorker("http://127.0.0.1:9", "ann", secret=SECRET).arrive()


def crowd_worker(site, name="ann") -> CrowdWorker:
    worker = CrowdWorker(site.url, name, secret=SECRET)
    worker.arrive()
    return worker


def simulate(batch, site, *, n_workers=2, seed=7):
    options = {"hit_type_id": batch.hit_type_id, "names": crowd_names(n_workers, seed=seed)}
    options["source"] = SimulatedAnswers(batch.study, seed=seed)
    return replay_group(site_url=site.url, total=0, **options)


def record(item: str, values: dict[str, float], *, who: str, **fields) -> SubmissionDraft:
    facts = {"item": item, "raw": "", "line": 2, "identity": who} | fields
    rows = [JudgmentDraft(key, "appropriateness", value) for key, value in values.items()]
    return SubmissionDraft(judgments=tuple(rows), **facts)


def replay(batch, site, drafts):
    source = RecordedAnswers(batch.study, drafts)
    return replay_plan(plan=source.plan(batch), source=source, site_url=site.url)


def task_of(item) -> dict:
    return json.loads(Page(task_page(item)).task or "null")


# At the worker site


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_worker_cannot_take_a_hit_again_by_its_address(live_server, study, client):
    hit = hit_on(published_batch(study, client, max_assignments=3), "d0")
    worker = crowd_worker(live_server)
    task = worker.accept(hit.hit_id)
    assert task.hit_id == hit.hit_id
    # One that stopped between accepting and submitting goes on.
    worker = crowd_worker(live_server)
    assert worker.accept(hit.hit_id).assignment_id == task.assignment_id
    unknown = type(task)("3NOSUCHASSIGNMENT", task.hit_id, task.submit_url, task.page)
    with refused(exceptions.CrowdStuck, "bad_status"):
        worker.submit(unknown, {})
    worker.submit(task, SimulatedAnswers(study, seed=1).answer("ann", task.page))
    assert worker.accept(hit.hit_id) is None
    assert MarketplaceAssignment.objects.count() == 1


@pytest.mark.slow
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
    assert collect.collect_batch(batch=batch, client=client).n_unreadable == 0
    values = [(d.item, j.candidate, j.value) for d in drafts[:3] for j in d.judgments]
    frame = judgment_frame(study)[["item", "candidate", "value"]]
    assert sorted(frame.itertuples(index=False, name=None)) == sorted(values)
    by_annotator = judgment_frame(study).groupby("annotator", observed=True)["item"].nunique()
    assert sorted(by_annotator) == [1, 2]
    assert set(Submission.objects.values_list("justification", flat=True)) == set(why.values())
    # Only those of simulated workers are known as simulated.
    simulate(batch, live_server, n_workers=1)
    collect.collect_batch(batch=batch, client=client)
    exported = studies.submission_rows(study)
    column = list(exported.columns).index("simulated")
    marks = [False, False, False, True, True]
    assert sorted(row[column] for row in exported.rows) == marks
    assert sorted(Submission.objects.values_list("is_simulated", flat=True)) == marks
    assert not Submission.objects.filter(has_unproved_mark=True).exists()


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


N_WORKERS = 12


def answers_to(item: Item, faults: dict[str, str] | None = None) -> list[Answer]:
    source = FaultyAnswers(SimulatedAnswers(item.study, seed=3), faults or {}, seed=3)
    given = [source.answer(f"w{number}", task_of(item)) for number in range(N_WORKERS)]
    return [read_answer(xml_of({"answer": json.dumps(each)}), item) for each in given]


@pytest.fixture
def item(db: None) -> Item:
    study = rating_study(n_items=1, systems=("a", "b", "c"), questions=())
    study.items.get().candidates.filter(key="b").update(text=study.items.get().reference)
    return item_of(study, documents.read_document(EVERY_KIND))


def test_every_kind_of_question_is_answered_as_its_page_allows(item: Item) -> None:
    answers = answers_to(item)
    names = {each.question.name for answer in answers for each in answer.judgments}
    assert names == set(item.study.questions.values_list("name", flat=True))
    # Comparisons go by how good the candidates are.
    best = item.candidates.get(key="b").key
    for question in ("best", "ends", "order"):
        places = [values_of(answer, question)[best] for answer in answers]
        assert sum(places) / len(places) > 0.7
    # What depends on an answer is written only where it is asked.
    for answer in answers:
        low = {key for key, value in values_of(answer, "fit").items() if value < 20}
        assert {each.candidate.key for each in answer.written if each.question == "why"} == low


@pytest.mark.django_db
@pytest.mark.parametrize("name", templates.template_names())
def test_the_templates_are_answered_with_consent_and_reasons_by_good_and_bad(name):
    pool = name in uploads.OF_POOLS
    systems = ("a", "b")
    study = alternatives_study() if pool else rating_study(systems=systems, questions=())
    item = item_of(study, templates.read_protocol(name))
    for fault in ("", "random", "straight_line", "copy_paste", "machine_like"):
        faults = {f"w{number}": fault for number in range(N_WORKERS)} if fault else {}
        answers = answers_to(item, faults)
        assert all(answer.judgments for answer in answers)
        is_pasted = name == "alternatives" and fault == "copy_paste"
        assert any(answer.pasted for answer in answers) == is_pasted


SEED = 3


@pytest.fixture
def pages(db):
    batch = batch_of(checked_study(*CHECKS, n_items=10))
    return batch.study, [
        json.loads(Page(task_page(hit.item, batch.document, hit.placed_checks)).task or "null")
        for hit in models.Hit.objects.of(batch)
    ]


def test_each_fault_is_what_it_says_and_careful_workers_pass_their_checks(pages):
    study, tasks = pages
    faults = faulty_names(FAULTS, seed=SEED)
    careful = SimulatedAnswers(study, seed=SEED)
    crowd = FaultyAnswers(careful, faults, seed=SEED)
    by_fault = {fault: name for name, fault in reversed(faults.items())}

    def answers(name):
        return [crowd.answer(name, task) for task in tasks]

    def values(name):
        return [row["value"] for each in answers(name) for row in each["judgments"]]

    assert len(faults) == len(FAULTS) + 1
    assert answers("crowd-3-1") == [careful.answer("crowd-3-1", task) for task in tasks]
    assert len(set(values(by_fault["straight_line"]))) == 1
    calm = [careful.answer(by_fault["random"], task) for task in tasks]
    assert values(by_fault["random"]) != [row["value"] for one in calm for row in one["judgments"]]
    first, second = (values(f"crowd-3-colluding-{letter}") for letter in "ab")
    assert max(abs(a - b) for a, b in zip(first, second, strict=True)) == 1
    assert max(each["active_seconds"] for each in answers(by_fault["fast"])) < 5
    wordy = [task | {"justification_min_length": 30} for task in tasks]
    reasons = {crowd.answer(by_fault["copy_paste"], task)["justification"] for task in wordy}
    assert {reason.replace(PASTED, "").strip() for reason in reasons} == {""}
    checks = {each.blind_key: each for each in PlacedCheck.objects.all()}
    for task, given in zip(tasks, answers("crowd-3-1"), strict=True):
        rows = {row["candidate"]: row["value"] for row in given["judgments"]}
        for key in set(task["candidates"]) & set(checks):
            check = checks[key]
            if check.expected is not None:
                assert rows[key] == check.expected
            else:
                other = rows[check.compared.blind_key]
                assert rows[key] == other if check.kind == "repeat" else rows[key] <= other
