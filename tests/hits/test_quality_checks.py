import json
import re
from dataclasses import replace

import pytest
import yaml
from django.test import Client
from django.urls import reverse

from accounts.models import User
from annotation import check_placement, models, study_files
from annotation.flags import store_evidence
from annotation.frames import candidate_frame, judgment_frame
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.records import (
    Check,
    CheckCase,
    Completion,
    Condition,
    Example,
    GradedCase,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
    QualificationTest,
    QuestionCheck,
)
from annotation.protocols.templates import write_yaml
from annotation.protocols.validation import document_faults, source_faults
from annotation.protocols.versions import save_draft, write_columns
from annotation.result_kinds.agreement import AgreementKind
from hits import collect, connections, drafts, exceptions, requirements
from hits.answers import read_answer_text
from hits.contacts import record_of
from hits.crowd.simulated import FaultyAnswers, SimulatedAnswers
from hits.models import Assignment, Batch, Exclusion, Hit, Worker, WorkerClearance
from hits.pages import evidence, terms
from hits.pages.desk import desk_facts, queue_of
from hits.questions import task_page
from marketplace.exceptions import MarketplaceError
from tests.annotation import importing, studies
from tests.codes import codes_of, refused
from tests.hits.test_questions import task_of
from tests.hits.work import batch_of, hand_in, hit_on, published_batch
from tests.marketplace.conftest import submit

LINE = ProtocolQuestion("appropriateness", "line", "How good?", low_label="bad", high_label="good")
GOLD = Check("gold", share=0.5, cases=(CheckCase(candidate="A fine answer.", value=90),))
CHECKS = (
    GOLD,
    Check("repeat", share=0.5),
    Check("degraded", share=0.5, holds_work=True),
    Check("instructed", share=0.5, cases=(CheckCase(candidate="Choose 10 here.", value=10),)),
)


def document(*checks: Check, **fields) -> ProtocolDocument:
    return ProtocolDocument(questions=(LINE,), title="Rate", checks=checks, **fields)


def checked_study(*checks: Check, n_items: int = 4, **fields):
    study = studies.rating_study(n_items=n_items)
    # Long enough for a stretch of words to be replaced.
    for item in study.items.all():
        for candidate in item.candidates.all():
            candidate.text = f"{candidate.key} says a few words about number {item.key} here"
            candidate.save()
    save_draft(study=study, document=document(*checks, **fields))
    return study


def answer(hit: Hit, value_of) -> str:
    shown = [*hit.item.candidates.all(), *hit.placed_checks]
    about = {"question": LINE.name, "seconds": 2}
    rows = [about | {"candidate": one.blind_key, "value": value_of(one)} for one in shown]
    given = {"version": 1, "item": str(hit.item.pk), "order": [row["candidate"] for row in rows]}
    given |= {"judgments": rows, "justification": "", "comment": ""}
    return json.dumps(given | {"active_seconds": 60, "pasted": False})


def careful(each) -> float:
    if isinstance(each, models.PlacedCheck):
        return {"repeat": 60, "degraded": 15}.get(each.kind, each.expected)
    return 60


def checked_work(client, ann, bob, *checks, n_items=4, **fields):
    """A study with answers to all its pages: careful ones of Ann's, and 50 everywhere of Bob's."""
    study = checked_study(*checks, n_items=n_items, **fields)
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, worked_seconds=60, answer=answer(hit, careful))
        submit(bob, hit.hit_id, worked_seconds=60, answer=answer(hit, lambda each: 50))
    assert collect.collect_batch(batch=batch, client=client).n_unreadable == 0
    return study


def placed_on(batch):
    rows = models.PlacedCheck.objects.filter(protocol=batch.protocol)
    return sorted(rows.values_list("item__key", "number", "text", "expected", "compared__key"))


@pytest.mark.slow
def test_checks_are_placed_on_their_share_of_the_pages_and_stay_there(client):
    batch = published_batch(checked_study(*CHECKS, n_items=10), client)
    placed = placed_on(batch)
    assert [sum(row[1] == number for row in placed) for number in range(4)] == [5, 5, 5, 5]
    assert max([row[0] for row in placed].count(f"d{n}") for n in range(10)) == 2  # spread
    for hit in Hit.objects.of(batch):
        page = task_page(hit.item, batch.document, hit.placed_checks)
        assert all(check.blind_key in page and check.text in page for check in hit.placed_checks)
        assert not [kind for kind in ("gold", "degraded", "instructed") if kind in page]
    again = published_batch(hit.item.study, client, round=2)
    assert placed_on(again) == placed  # the same version, the same pages


def test_answers_to_checks_are_scored_are_no_judgments_and_hold_work_from_rules(client, ann, bob):
    study = checked_work(client, ann, bob, *CHECKS)
    frame = judgment_frame(study)
    assert len(frame) == 2 * 4 * 2  # workers, items, systems: none of the checks
    assert set(frame["candidate"]) == {"alpha", "beta"} == set(candidate_frame(study)["candidate"])
    answers = models.CheckAnswer.objects.values_list("placed__kind", "value", "is_failed")
    assert len(answers) == 2 * 8
    assert {kind for kind, value, failed in answers if failed} == {"gold", "degraded", "instructed"}
    assert all(failed == (value == 50) for kind, value, failed in answers if kind != "repeat")
    store_evidence(study)
    rows = models.SubmissionEvidence.objects.filter(submission__item__study=study)
    failing = rows.filter(has_failed_check=True)
    assert failing.exists()
    assert not failing.filter(is_flagged=False).exists()
    held = rows.filter(is_held=True).values_list("submission", flat=True)
    degraded = models.CheckAnswer.objects.filter(placed__kind="degraded", is_failed=True)
    assert set(held) == set(degraded.values_list("submission", flat=True))
    [outcome] = preview(study)
    assert (outcome["would_approve"], outcome["held"]) == (6, 2)  # two degraded ones failed
    [whole] = preview(study, with_held=True)
    assert whole["would_approve"] == 8
    held = set(Assignment.objects.held().values_list("pk", flat=True))
    taken = {one.pk for one in drafts.unflagged_assignments(study, hours=-1)}
    assert len(held) == 2
    assert taken
    assert not held & taken


def test_what_a_check_cannot_be_is_refused():
    def codes(*checks, questions=(LINE,)):
        content = replace(document(*checks), questions=questions)
        return codes_of(document_faults(plain_document(content)))

    assert codes(GOLD) == []
    assert codes(Check("gold")) == ["missing"]
    assert codes(replace(GOLD, kind="repeat")) == ["needless_cases"]
    assert "not_ticked" in codes(replace(GOLD, kind="known_other"))
    wrong = Check("instructed", cases=(CheckCase(candidate="x", value=101), CheckCase(value=5)))
    assert codes(wrong) == ["off_scale", "shows_nothing"]
    reversed_line = replace(LINE, minimum=10, maximum=5)
    without_value = replace(GOLD, cases=(CheckCase(candidate="x"),))
    assert codes(without_value, questions=(reversed_line,)) == ["missing", "below_minimum"]
    best = ProtocolQuestion("best", "preference", "Which is best?")
    assert codes(GOLD, questions=(LINE, best)) == ["comparison"]


@pytest.mark.django_db
def test_known_pictures_are_placed_in_another_pool():
    study = studies.alternatives_study()
    question = ProtocolQuestion("acceptable", "selection", "Which?")
    other = CheckCase(item="boot", source_item="gown", source_candidate="coat")
    check = Check("known_other", share=1.0, cases=(other,))
    draft = ProtocolDocument(questions=(question,), title="Tick", checks=(check,))
    unknown = replace(check, cases=(replace(other, source_candidate="hat"),))
    [fault] = source_faults(study, replace(draft, checks=(unknown,)))
    assert (fault.code, "'hat'" in fault.message) == ("unknown_candidate", True)
    save_draft(study=study, document=draft)
    [placed] = models.PlacedCheck.objects.filter(protocol=batch_of(study).protocol)
    assert (placed.item.key, placed.text, placed.expected) == ("boot", "coat on gown", 0)


GUIDE = ProtocolQuestion(
    "guide",
    "category",
    "Choose B to show that you read this page.",
    about="item",
    categories=("A", "B"),
    check=QuestionCheck(value=1, share=0.5, holds_work=True),
)
AGAIN = replace(
    LINE, name="again", wording="Answer 10 here.", check=QuestionCheck(value=10, share=1.0)
)
BEST = ProtocolQuestion("best", "preference", "Which is best?", ties=True)


def test_questions_that_are_checks_stand_beside_any_kind_and_are_no_results(client, ann, bob):
    study = studies.rating_study(n_items=4)
    draft = ProtocolDocument((LINE, GUIDE, BEST, AGAIN), title="Rate")
    assert document_faults(plain_document(draft)) == []
    assert read_document(yaml.safe_load(write_yaml(draft))) == draft  # the label "B" of the value
    save_draft(study=study, document=draft)
    batch = published_batch(study, client, max_assignments=2)
    assert [each.name for each in study.questions.all()] == ["appropriateness", "best"]
    crowd = SimulatedAnswers(study, seed=1)
    careless = FaultyAnswers(crowd, {"straight": "straight_line"}, seed=1)
    n_guides = 0
    for hit in Hit.objects.of(batch):
        page = task_page(hit.item, hit.batch.document, hit.placed_checks)
        task = task_of(page)
        questions = {each["name"]: each for each in task["questions"]}
        n_guides += "guide" in questions
        [asked] = [each for each in hit.placed_checks if each.question == "again"]
        assert asked.compared.blind_key == questions["again"]["candidate"]
        page = task_page(hit.item, batch.document, hit.placed_checks)
        assert page.count('data-question="again"') == 1  # about one of the responses
        for worker, source in ((ann, crowd), (bob, careless)):
            given = source.answer("straight" if worker is bob else "careful", task)
            given["simulated"] = False  # else held, as it has no mark
            submit(worker, hit.hit_id, worked_seconds=600, answer=json.dumps(given))
    assert collect.collect_batch(batch=batch, client=client).n_unreadable == 0
    assert n_guides == 2  # its share of four pages
    assert set(judgment_frame(study)["question"]) == {"appropriateness", "best"}
    assert not models.WrittenAnswer.objects.exists()
    answers = models.CheckAnswer.objects.order_by("pk")
    assert answers.count() == 2 * (2 + 4)
    failed = answers.filter(is_failed=True)
    assert failed.values("submission__annotator").distinct().count() == 1  # the careless one
    assert set(answers.filter(placed__question="guide").values_list("position", flat=True)) == {
        None
    }
    store_evidence(study)
    held = models.SubmissionEvidence.objects.filter(is_held=True).values_list(
        "submission", flat=True
    )
    of_guide = failed.filter(placed__question="guide").values_list("submission", flat=True)
    assert set(held) == set(of_guide) != set()
    rows = "".join(study_files.study_download("checks.csv").write(study)).splitlines()
    assert len(rows) == 1 + answers.count()
    computed = AgreementKind().compute_now(study).record["questions"]
    assert {one["question"] for one in computed} == {"appropriateness", "best"}


@pytest.mark.django_db
def test_an_answer_to_a_check_that_is_not_on_the_page_is_refused():
    study = studies.rating_study(n_items=1)
    draft = ProtocolDocument((LINE, GUIDE), title="Rate")
    write_columns(study, draft)
    item = study.items.get()
    [placed] = check_placement.example_questions(draft, item)
    rows = [
        {"candidate": each.blind_key, "question": LINE.name, "value": 5}
        for each in item.candidates.all()
    ]
    rows += [{"candidate": None, "question": "guide", "value": 0}]
    order = [each.blind_key for each in item.candidates.all()]
    text = json.dumps({"version": 1, "item": str(item.pk), "order": order, "judgments": rows})
    with refused(exceptions.AnswerUnreadable, "unasked"):
        read_answer_text(text, item, draft)
    answer = read_answer_text(text, item, draft, [placed])
    assert [(each.value, each.is_failed, each.position) for each in answer.checked] == [
        (0, True, None)
    ]
    assert len(answer.judgments) == 2


def test_what_a_question_that_is_a_check_cannot_be_is_refused():
    def codes(*questions, **fields):
        content = ProtocolDocument(questions=questions, title="Rate", **fields)
        return codes_of(document_faults(plain_document(content)))

    assert codes(LINE, replace(GUIDE, check=replace(GUIDE.check, value=7))) == ["off_scale"]
    assert codes(LINE, replace(GUIDE, check=QuestionCheck())) == ["missing"]
    assert codes(GUIDE) == ["only_checks"]
    assert codes(LINE, replace(BEST, check=GUIDE.check)) == ["other_kinds_option"]
    after = replace(LINE, name="why", about="item", when=Condition("guide", ("A",)))
    assert codes(LINE, GUIDE, after) == ["attention_check"]
    assert codes(LINE, AGAIN, checks=(replace(GOLD, question="again"),)) == ["no_single_value"]
    scored = Example("good", "Fine.", scores={"again": 10})
    assert codes(LINE, AGAIN, examples=(scored,)) == ["no_single_value"]
    case = GradedCase(candidate="Fine.", scores={"again": 10})
    tests = Qualifications(tests=(QualificationTest(cases=(case,)),))
    assert codes(LINE, AGAIN, qualifications=tests) == ["attention_check"]


@pytest.fixture
def desk():
    rosa = User.objects.create_user("rosa")
    browser = Client(headers={"host": "localhost"})
    browser.force_login(rosa)

    def open_(study, assignment):
        models.Study.objects.filter(pk=study.pk).update(owner=rosa)
        address = reverse("console:review", args=[study.slug])
        return browser.get(address, {"assignment": assignment.pk})

    open_.browser, open_.owner = browser, rosa
    return open_


def test_the_desk_shows_failed_checks_flags_and_words_and_clears_workers(client, desk, ann, bob):
    checks = tuple(replace(check, share=1.0) for check in CHECKS)
    study = checked_work(client, ann, bob, *checks, n_items=5, holding_flags=("failed_checks",))
    assignments = Assignment.objects.order_by("pk")
    of_ann = assignments.filter(worker__worker_id=ann.worker_id).first()
    of_bob = assignments.filter(worker__worker_id=bob.worker_id).first()
    unmeasured = desk(study, of_ann).context["row"].measured
    store_evidence(study)
    [flag] = models.AnnotatorFlag.objects.filter(name="failed_checks")
    assert (flag.n, flag.n_hits) == (20, 15)
    assert flag.p_value < 0.002
    held = models.SubmissionEvidence.objects.filter(is_held=True)
    assert {row.submission.annotator_id for row in held} == {flag.annotator_id}
    assert not models.SubmissionEvidence.objects.exclude(
        submission__annotator=flag.annotator
    ).filter(is_flagged=True, has_failed_check=True)
    batch = Batch.objects.get()
    Exclusion.objects.create(batch=batch, worker=of_bob.worker, reason=Exclusion.Reason.HELD)
    words = "1. Because of the tone.\n2. It is short."
    models.WrittenAnswer.objects.create(submission=of_bob.submission, question="why", text=words)
    page = desk(study, of_bob)
    texts = [f"{flag.title} {flag.text}" for flag in page.context["row"].flags]
    flags = [set(re.findall(r"\d[\d,.]*\d|\d", text)) for text in texts]
    assert any({"50", "90", "20"} <= numbers for numbers in flags)  # the right value, and how near
    assert any({"15", "20"} <= numbers for numbers in flags)  # so many of the worker's checks
    assert [one["text"] for one in page.context["written"]] == [words]
    assert re.search(f'class="said"[^>]*>{re.escape(words)}', page.content.decode())
    clear = reverse("console:review-clear", args=[study.slug, of_bob.pk])
    assert page.context["record"]["is_held"]
    assert clear in page.content.decode()
    page = desk(study, of_ann)
    assert (page.context["row"].flags, page.context["record"]["is_held"]) == ([], False)
    assert re.findall(r"\d+", page.context["row"].measured) == ["4"]
    assert not re.findall(r"\d+", unmeasured)
    desk.browser.post(clear)
    assert WorkerClearance.objects.get().cleared_by == desk.owner
    assert {"checks.csv", "written.csv"} <= set(study_files.file_names(study))
    rows = "".join(study_files.study_download("checks.csv").write(study)).splitlines()
    assert len(rows) == 1 + 2 * 5 * 4
    assert rows[1].startswith(f"{study.slug},1,d0,")
    assert '"' + words in "".join(study_files.study_download("written.csv").write(study))


@pytest.mark.slow
def test_review_names_annotators_as_all_pages_do_and_marks_what_was_drafted(client, desk, ann, bob):
    study = checked_work(client, ann, bob, n_items=2)
    first, second, third, _ = Assignment.objects.order_by("pk")
    desk(study, first)
    for one, action in ((first, "approve"), (second, "reject"), (third, "message")):
        form = {"action": action, "text": "Look.", "subject": "Hello"}
        desk.browser.post(reverse("console:review-draft", args=[study.slug, one.pk]), form)
    page = desk(study, second)
    marks = {row.assignment.pk: row.mark[0] for row in page.context["queue"]}
    assert len({marks[one.pk] for one in (first, second, third)}) == 3
    row = page.context["row"]
    assert row.name == second.submission.annotator.pseudonym
    assert f">{second.worker.worker_id}<" in page.content.decode()


def test_equal_values_are_next_to_each_other_and_the_page_has_a_time_line(client, desk, ann, bob):
    study = checked_work(client, ann, bob, n_items=1)
    submission = models.Submission.objects.last()
    events = [
        [1, "input"],
        [5, "hide"],
        [11, "show"],
        [20, "paste", 30],
        [999, "typing", 3, 3, 1, 1],
    ]
    for one in models.Submission.objects.all():
        one.events = events
        one.save()
        others = models.Judgment.objects.exclude(submission=submission).order_by("pk")
        others.update(value=50)
    page = desk(study, submission.assignment)
    timeline = page.context["effort"].timeline
    assert [kind for kind, _x in timeline["marks"]] == ["input", "paste", "typing"]
    places = [x for _kind, x in timeline["marks"]]
    assert 6 <= places[0] < places[1] < places[2] == 114
    assert timeline["seconds"] == submission.seconds
    [(start, width)] = timeline["hidden"]
    assert start + width / 2 == pytest.approx(6 + 108 * 8 / submission.seconds, abs=0.2)
    question = study.questions.first()
    dots = [one["x"] for one in evidence._dots(question, [50, 50, 50, 100])]
    assert dots == [54, 60, 66, 114]


def test_the_desk_names_who_shared_a_device_with_its_numbers(client, desk, ann, bob, monkeypatch):
    study = checked_study(n_items=2)
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
    first = hit_on(batch, "d0")
    submit(bob, first.hit_id, answer=answer(first, careful))
    collect.collect_batch(batch=batch, client=client)
    row = {"worker_id": bob.worker_id, "n_shared": 1, "n": 1, "n_others": 1}
    others = {"others": [ann.worker_id, "ANOBODY"]}
    unknown = {"worker_id": "ASTRANGER", "n_shared": 1, "n": 1, "n_others": 1, "others": []}
    answers = {"shared_devices": [row | others, unknown]}
    monkeypatch.setattr(connections, "post", lambda *_arguments: answers)
    for _time in range(2):
        assert connections.fetch_shared_devices(batch=batch) == 1  # anew, not once more
    of_ann = Assignment.objects.filter(worker__worker_id=ann.worker_id).first()
    page = desk(study, Assignment.objects.get(worker__worker_id=bob.worker_id))
    [flag] = page.context["row"].flags
    assert flag.annotators == [of_ann.submission.annotator.pseudonym]
    assert of_ann.submission.annotator.pseudonym in page.content.decode()
    facts = desk_facts(study, desk.owner)
    queue = queue_of(study, desk.owner, "waiting", facts=facts, drafts=[])
    assert [len(each.flags) for each in queue] == [1, 0, 0]
    answers["shared_devices"] = "none"
    with refused(exceptions.MarketplaceFault, "not_a_list"):
        connections.fetch_shared_devices(batch=batch)


VALUES = {"alpha": 10, "beta": 20}


def is_held(worker, study) -> bool:
    reader = User.objects.get_or_create(username="reader")[0]
    return record_of(Assignment.objects.filter(worker=worker).first(), study, reader)["is_held"]


def may_work(worker, hit) -> bool:
    try:
        hand_in(worker, hit, VALUES)
    except MarketplaceError:
        return False
    return True


def test_a_worker_waits_after_the_first_hits_until_someone_has_looked(client, ann, bob):
    study = studies.rating_study(n_items=5)
    rules = Qualifications(hold_after_hits=2)
    save_draft(study=study, document=ProtocolDocument((LINE,), title="Rate", qualifications=rules))
    batch = published_batch(study, client, max_assignments=2)
    assert may_work(ann, hit_on(batch, "d0"))
    assert may_work(ann, hit_on(batch, "d1"))
    collect.collect_batch(batch=batch, client=client)
    assert not may_work(ann, hit_on(batch, "d2"))
    assert may_work(bob, hit_on(batch, "d2"))  # who did none yet
    [held] = Exclusion.objects.of(batch)
    assert (held.worker.worker_id, held.reason) == (ann.worker_id, Exclusion.Reason.HELD)
    assert is_held(held.worker, study)
    assert requirements.clear_workers(study=study, workers=[held.worker], cleared_by=None) == 1
    assert not is_held(held.worker, study)
    collect.collect_batch(batch=batch, client=client)
    assert may_work(ann, hit_on(batch, "d2"))
    assert may_work(ann, hit_on(batch, "d3"))
    collect.collect_batch(batch=batch, client=client)
    assert may_work(ann, hit_on(batch, "d4"))  # once looked at, not held again
    assert not Exclusion.objects.of(batch).exists()


def test_workers_of_an_excluded_study_may_not_take_part(client, ann, bob):
    second = studies.rating_study("second", n_items=1)
    earlier = published_batch(studies.rating_study("first", n_items=1), client)
    hand_in(ann, hit_on(earlier, "d0"), VALUES)
    collect.collect_batch(batch=earlier, client=client)
    rules = Qualifications(excluded_studies=("first",))
    save_draft(study=second, document=ProtocolDocument((LINE,), title="Rate", qualifications=rules))
    batch = published_batch(second, client, max_assignments=2)
    assert not may_work(ann, hit_on(batch, "d0"))
    assert may_work(bob, hit_on(batch, "d0"))
    assert Exclusion.objects.of(batch).get().worker == Worker.objects.get(worker_id=ann.worker_id)


def preview(study, **options):
    text = importing.command_output("approve_study", study.slug, dry_run=True, json=True, **options)
    return json.loads(text)["batches"]


def test_the_second_round_begins_with_the_protocols_share(client):
    study = studies.rating_study(n_items=20)
    completion = Completion(second_round_share=0.1)
    save_draft(study=study, document=ProtocolDocument((LINE,), title="Rate", completion=completion))
    batch = published_batch(study, client)
    content = terms.second_round(batch, [batch], 20)
    assert (content["n_items"], content["round"], content["of_round"]) == (2, 2, 1)
    assert content["excluded_rounds"] == "1"
