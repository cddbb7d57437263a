"""A write under one key is done once, and answered alike."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from annotation.models import Study
from console.api.idempotency import delete_old_answers
from console.models import StoredAnswer
from tests.console.api.conftest import program_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
WHERE = "/api/v1/studies/mine/"
KEY = {"Idempotency-Key": "one"}


def renames():
    return AuditEntry.objects.filter(action="study.rename").count()


def test_the_first_answer_is_kept_and_given_again(study, program):
    first = program.send("patch", WHERE, {"title": "One"}, **KEY)
    Study.objects.update(title="Changed meanwhile")
    again = program.send("patch", WHERE, {"title": "One"}, **KEY)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert renames() == 1
    assert Study.objects.get().title == "Changed meanwhile"


def test_without_a_key_each_is_done(study, program):
    for title in ("One", "Two"):
        program.send("patch", WHERE, {"title": title})
    assert renames() == 2


def test_other_parameters_under_the_same_key_are_refused(study, program):
    program.send("patch", WHERE, {"title": "One"}, **KEY)
    answer = program.send("patch", WHERE, {"title": "Two"}, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert Study.objects.get().title == "One"


def test_a_key_is_of_one_holder_and_one_address(study, program, researcher):
    program.send("patch", WHERE, {"title": "One"}, **KEY)
    assert program.send("put", f"{WHERE}archive/", **KEY).status_code != 422
    answer = program_of(researcher, "write").send("patch", WHERE, {"title": "Two"}, **KEY)
    assert answer.json()["title"] == "Two"


def test_a_refused_write_changes_nothing_and_leaves_its_key_free(study, program):
    answer = program.send("patch", WHERE, {"title": ""}, **KEY)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["title"])
    assert not StoredAnswer.objects.exists()
    assert program.send("patch", WHERE, {"title": "One"}, **KEY).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "ключ"])
def test_a_key_is_a_short_word(study, program, key):
    answer = program.send("patch", WHERE, {"title": "One"}, **{"Idempotency-Key": key})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["Idempotency-Key"])


def test_answers_are_forgotten_after_a_day(study, program):
    program.send("patch", WHERE, {"title": "One"}, **KEY)
    StoredAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert program.send("patch", WHERE, {"title": "Two"}, **KEY).json()["title"] == "Two"
    StoredAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert (delete_old_answers(), StoredAnswer.objects.count()) == (1, 0)
