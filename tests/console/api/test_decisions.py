import pytest
from django.urls import reverse

from accounts import models, roles
from annotation.study_facts import REVIEW
from hits.models import Assignment, DraftDecision
from tests.console.api.conftest import program_of
from tests.console.team_study import ASSIGNMENT_ID, WORKER_ID
from tests.console.work import request_for_later
from work.models import Job

pytestmark = pytest.mark.django_db


def address(name, *parts):
    return reverse(f"console:api:{name}", args=["mine", *parts])


@pytest.fixture
def owner(study, users):
    return users["owner"]


@pytest.fixture
def program(owner):
    return program_of(owner, *roles.Scope)


@pytest.fixture
def reviewer(owner):
    return program_of(owner, roles.Scope.READ, roles.Scope.REVIEW)


@pytest.fixture
def waiting(study):
    return Assignment.objects.get(status="Submitted")


@pytest.fixture
def approved(study):
    return Assignment.objects.get(status="Approved")


def decide(program, *assignments, **fields):
    content = {"assignments": [one.pk for one in assignments]} | fields
    return program.send("post", address("drafts"), content)


def send(program, digest, key="once"):
    return program.send(
        "post", address("drafts-send"), {"digest": digest}, **{"Idempotency-Key": key}
    )


@pytest.mark.slow
def test_the_list_names_workers_and_prices_to_who_may_know_them(program, reviewer):
    [row] = program.send("get", address("assignments") + "?show=approved").json()["results"]
    assert (row["worker_id"], row["assignment_id"]) == (WORKER_ID, ASSIGNMENT_ID)
    assert row["price_usd"] == "0.10"
    [row] = reviewer.send("get", address("assignments") + "?show=approved").json()["results"]
    assert (row["worker_id"], row["assignment_id"], row["price_usd"]) == (None, None, None)
    assert row["annotator"]


def test_decisions_are_prepared_summed_up_and_taken_back(program, waiting):
    for _ in range(2):
        answer = program.send("get", address("assignments")).json()
        assert (answer["count"], answer["results"][0]["id"]) == (1, waiting.pk)
        assert answer["results"][0]["flags"][0]["short"] == "not read"
    assert models.AuditEntry.objects.filter(action="workers.view").count() == 1
    summary = decide(program, waiting, action="approve").json()
    assert (summary["numbers"], summary["total_usd"]) == ({"approve": 1}, "0.10")
    assert summary == program.send("get", address("drafts")).json()
    draft = program.send("post", address("drafts-undo"), {"assignment": waiting.pk}).json()
    assert (draft["action"], draft["assignment"]) == ("approve", waiting.pk)
    assert program.send("post", address("drafts-undo"), {}).status_code == 409


def test_what_cannot_be_decided_is_refused_with_all_beside_it(program, waiting):
    answer = decide(program, waiting, action="reject")
    assert (answer.status_code, answer.json()["code"]) == (400, "feedback_unfit")
    assert not DraftDecision.objects.exists()
    content = {"assignments": [waiting.pk, 10**9], "action": "approve"}
    answer = program.send("post", address("drafts"), content)
    assert answer.json()["errors"].keys() == {"assignments"}
    assert "1000000000" in answer.json()["errors"]["assignments"][0]
    assert not DraftDecision.objects.exists()
    for rule, field in (("approve-unflagged", "hours"), ("reject-fast", "divisor")):
        answer = program.send("post", address("rule-preview"), {"rule": rule})
        assert field in answer.json()["errors"]


def test_a_program_that_may_not_spend_pays_no_bonus(program, reviewer, approved):
    bonus = {"action": "bonus", "text": "Thank you.", "amount_usd": "0.50"}
    assert decide(reviewer, approved, **bonus).status_code == 403
    assert send(reviewer, decide(program, approved, **bonus).json()["digest"]).status_code == 403
    assert DraftDecision.objects.count() == 1


def test_only_the_summary_that_was_read_is_sent_under_a_key(program, waiting):
    digest = decide(program, waiting, action="approve").json()["digest"]
    answer = program.send("post", address("drafts-send"), {"digest": digest})
    assert answer.json()["errors"].keys() == {"Idempotency-Key"}
    decide(program, waiting, action="reject", text="Not about the page.")
    answer = send(program, digest)
    assert (answer.status_code, answer.json()["code"]) == (400, "summary_outdated")
    assert Assignment.objects.get(pk=waiting.pk).decision == ""


def test_a_rule_lists_first_what_it_takes(program, approved):
    numbers = {"rule": "bonus-workers", "least_approved": 1, "amount_usd": "0.20", "text": "Many."}
    preview = program.send("post", address("rule-preview"), numbers).json()
    assert preview == {"assignments": [approved.pk], "total_usd": "0.20"}
    assert not DraftDecision.objects.exists()
    content = numbers | {"assignments": preview["assignments"]}
    assert program.send("post", address("rule-drafts"), content).json()["numbers"] == {"bonus": 1}


def test_workers_and_amounts_are_for_who_may_see_them(program, reviewer, study, approved, waiting):
    batch = study.batches.get(is_recruited=False)
    with_money, without = (
        each.send("get", address("batch", batch.pk)).json() for each in (program, reviewer)
    )
    assert with_money["batch"]["reward_usd"] == "0.10"
    assert with_money["spend"]["rewards_usd"] == "0.10"
    assert (without["batch"]["reward_usd"], without["spend"]) == (None, None)
    texts = [decide(each, approved, action="approve").json() for each in (program, reviewer)]
    assert [text["code"] for text in texts] == ["decision_refused"] * 2
    assert texts[0]["detail"].startswith(f"{ASSIGNMENT_ID}: ")
    assert texts[1]["detail"].startswith(f"{approved.pk}: ")
    said = f"Assignment {ASSIGNMENT_ID} is not in a state to be approved."
    Assignment.objects.filter(pk=waiting.pk).update(decision_problem=said)
    for each, is_shown in ((program, True), (reviewer, False)):
        [row] = each.send("get", address("assignments")).json()["results"]
        assert row["decision_problem"]
        assert (row["decision_problem"] == said) == is_shown
        assert (ASSIGNMENT_ID in row["decision_problem"]) == is_shown
    for each, named in ((program, waiting.assignment_id), (reviewer, str(waiting.pk))):
        Assignment.objects.filter(pk=waiting.pk).update(status="Submitted")
        digest = decide(each, waiting, action="approve").json()["digest"]
        Assignment.objects.filter(pk=waiting.pk).update(status="Approved")
        [problem] = send(each, digest, key=named).json()["problems"]
        assert problem.startswith(f"{named}: ")
    said = f"The marketplace refused (RequestError): {ASSIGNMENT_ID} does not exist."
    job = request_for_later(study=study, kind=REVIEW)
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, message=said)
    assert program.send("get", address("job", job.pk)).json()["message"] == said
    for where in (address("job", job.pk), address("jobs")):
        assert ASSIGNMENT_ID not in reviewer.send("get", where).content.decode()
