"""Bad workers of the crowd: each does what its fault says."""

import json

import pytest

from annotation.models import PlacedCheck
from hits.checked_pages import checks_on
from hits.crowd.faults import FAULTS, PASTED, FaultyAnswers, faulty_names
from hits.crowd.pages import Page
from hits.crowd.simulated import SimulatedAnswers
from hits.models import Hit
from hits.questions import task_page
from tests.hits.test_quality_checks import CHECKS, checked_study
from tests.hits.work import batch_of

pytestmark = pytest.mark.django_db
SEED = 3


@pytest.fixture
def pages():
    """The study, and the tasks of its pages with their checks."""
    batch = batch_of(checked_study(*CHECKS, n_items=10))
    return batch.study, [
        json.loads(Page(task_page(hit.item, batch.document, checks_on(hit))).task or "null")
        for hit in Hit.objects.of(batch)
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
    assert values(by_fault["random"]) != [
        row["value"]
        for task in tasks
        for row in careful.answer(by_fault["random"], task)["judgments"]
    ]
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
