"""Dallinger's client of Prolific, as the registry has it, at the fake.

It names Prolific's address in its code, and nothing of it is changed: what `requests` is to send
there goes to the fake. What the module imports of an experiment's database is not needed.
"""

import importlib
import sys
import types

import pytest
import requests
from requests.adapters import HTTPAdapter

from benchmarks.fake_prolific.server import FakeProlific
from tests.marketplace.conformance.test_foreign_programs import _raise, foreign  # noqa: F401

THEIRS = "https://api.prolific.com"
STUDY = {
    "completion_codes": [
        {"code": "C1", "code_type": "DEFAULT", "actions": [{"action": "MANUALLY_REVIEW"}]}
    ],
    "completion_option": "code",
    "description": "Read and rate.",
    "filters": [],
    "estimated_completion_time": 5,
    "external_study_url": "https://study.example/ad?PROLIFIC_PID={{%PROLIFIC_PID%}}",
    "internal_name": "experiment-7",
    "is_custom_screening": True,
    "maximum_allowed_time": 17,
    "name": "Rate dialogues",
    "project_name": "Project",
    "prolific_id_option": "url_parameters",
    "reward": 150,
    "total_available_places": 2,
    "workspace": "Workspace",
    "device_compatibility": ["desktop"],
}


@pytest.fixture
def fake(monkeypatch):
    with FakeProlific(strict=False) as running:
        send = HTTPAdapter.send

        def send_here(adapter, request, *arguments, **options):
            assert request.url.startswith((THEIRS, running.url))
            request.url = request.url.replace(THEIRS, running.url, 1)
            return send(adapter, request, *arguments, **options)

        monkeypatch.setattr(HTTPAdapter, "send", send_here)
        yield running
        running.world.check()


@pytest.fixture
def prolific(foreign):  # noqa: F811
    package = types.ModuleType("dallinger")
    package.__path__ = [str(foreign / "dallinger")]
    others = {name: types.ModuleType(f"dallinger.{name}") for name in ("db", "models", "utils")}
    others["models"].Participant = others["utils"].median_time_spent_in_hours = None
    recruiters = types.ModuleType("dallinger.recruiters")
    recruiters.handle_and_raise_recruitment_error = _raise
    package.db = others["db"]
    sys.modules |= {"dallinger": package, "dallinger.recruiters": recruiters}
    sys.modules |= {each.__name__: each for each in others.values()}
    return importlib.import_module("dallinger.prolific")


@pytest.fixture
def service(prolific, fake):
    return prolific.ProlificService(fake.token, "v1", "https://example.org/")


@pytest.fixture
def study(service):
    return service.create_study(**STUDY, publish_experiment=True, mode="live")


def test_dallinger_drafts_publishes_lists_and_deletes_studies(prolific, fake, service, study):
    assert study["status"] == "ACTIVE"
    assert fake.world.available == 100_000 - 2 * 200
    draft = service.create_study(**STUDY, publish_experiment=False, mode="sandbox")
    states = {each["id"]: each["status"] for each in service.get_studies()}
    assert states == {study["id"]: "ACTIVE", draft["id"]: "UNPUBLISHED"}
    assert [each["annotation"] for each in service.get_hits()] == ["experiment-7"] * 2
    assert service.delete_study(draft["id"])
    with pytest.raises(prolific.ProlificServiceException):
        service.delete_study(study["id"])
    other = service.draft_study(**STUDY | {"project_name": "Another"})
    assert other["project"] == fake.world.projects[-1]["id"] != fake.world.project
    with pytest.raises(prolific.ProlificServiceNoSuchWorkspaceException):
        service.draft_study(**STUDY | {"workspace": "Nowhere"})
    assert service.get_unread_messages() == []


def test_dallinger_adds_places_approves_and_pays_a_bonus(fake, service, study):
    service.add_participants_to_study(study["id"], 1)
    there = fake.world.studies[study["id"]]
    assert there.places == 3
    submission = fake.world.arrive(there)
    fake.world.enter(submission, "C1")
    found = service.get_participant_submission(submission.id)
    assert (found["worker_id"], found["status"]) == (submission.participant, "AWAITING REVIEW")
    assert list(service.get_assignments_for_study(study["id"])) == [submission.id]
    service.approve_participant_submission(submission.id)
    assert submission.status == "APPROVED"
    service.approve_participant_submission(submission.id)
    service.pay_session_bonus(study["id"], submission.participant, 0.75)
    raw = service.get_participant_submission(submission.id, translate=False)
    assert raw["bonus_payments"] == [75]
    assert service.get_total_cost(study["id"]) == 200 + 100
    assert service.get_participant_submission("0" * 24, translate=False) is None


def test_dallinger_says_who_it_is_and_reads_all_pages(fake, service, study, prolific):
    service.add_participants_to_study(study["id"], 118)
    there = fake.world.studies[study["id"]]
    made = {fake.world.arrive(there).id for _ in range(120)}
    assert {each["id"] for each in service.get_submissions(study["id"])} == made
    assert fake.calls.count("submissions") == 2
    assert service.api_root == f"{THEIRS}/api/v1"
    assert service.who_am_i()["id"] == fake.world.user
    stranger = prolific.ProlificService("wrong", "v1", "https://example.org/")
    with pytest.raises(prolific.ProlificServiceException):
        stranger.who_am_i()


def test_dallinger_screens_out_and_what_is_dropped_is_an_error_to_it(fake, service, study):
    submission = fake.world.arrive(fake.world.studies[study["id"]])
    answer = service.screen_out(study["id"], submission.id, 0.3, increase_places=False)
    assert answer["payment_per_participant"] == {"amount": 0.3, "currency": "GBP"}
    assert submission.status == "SCREENED OUT"
    fake.fail_next("study", "drop")
    with pytest.raises(requests.ConnectionError):
        service.get_study(study["id"])
