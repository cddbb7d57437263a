"""The MTurk modules of Dallinger and psiTurk, as the registry has them, through the bridge.

They name Amazon's endpoint in their code, and nothing of it is changed. Of Dallinger the package's
`__init__`, which imports all of it, is passed over, and one function of another module, which
writes errors to an experiment's database before it raises them, only raises here.
"""

import importlib
import os
import sys
import types
from configparser import ConfigParser
from datetime import timedelta
from pathlib import Path

import pytest

from marketplace import exceptions, models
from tests.codes import refused
from tests.marketplace.conftest import HIT, submit

FOREIGN = Path(sys.prefix) / "foreign"


@pytest.fixture
def foreign(monkeypatch):
    if not FOREIGN.is_dir():
        message = f"{FOREIGN} is missing: `make {Path(sys.prefix).name}/.installed-dev` makes it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    monkeypatch.syspath_prepend(str(FOREIGN))
    yield FOREIGN
    for name in [each for each in sys.modules if each.split(".")[0] in ("dallinger", "psiturk")]:
        del sys.modules[name]


# Dallinger


@pytest.fixture
def dallinger(foreign):
    package = types.ModuleType("dallinger")
    package.__path__ = [str(foreign / "dallinger")]
    recruiters = types.ModuleType("dallinger.recruiters")
    recruiters.handle_and_raise_recruitment_error = _raise
    sys.modules |= {"dallinger": package, "dallinger.recruiters": recruiters}
    return importlib.import_module("dallinger.mturk")


def _raise(error):
    raise error


@pytest.fixture
def service(dallinger, led_to_the_bridge, keys):
    return dallinger.MTurkService(keys["access_key_id"], keys["secret_access_key"], "us-east-1")


@pytest.fixture
def dallinger_hit(dallinger, service):
    def create(**changes):
        options = {
            "experiment_id": "experiment-7",
            "title": "Rate dialogues",
            "description": "Read and rate.",
            "keywords": ["dialogue", "rating"],
            "reward": 0.5,
            "duration_hours": 1,
            "lifetime_days": 1,
            "question": dallinger.MTurkQuestions.external("https://study.example/ad"),
            "max_assignments": 1,
            "annotation": "experiment-7",
            "qualifications": [dallinger.MTurkQualificationRequirements.min_approval(95)],
            "do_subscribe": False,
        }
        return service.create_hit(**options | changes)

    return create


@pytest.mark.parametrize("sandbox", [True, False])
def test_dallinger_names_amazon_and_speaks_to_this_marketplace(
    dallinger, led_to_the_bridge, keys, sandbox
):
    key = (keys["access_key_id"], keys["secret_access_key"])
    service = dallinger.MTurkService(*key, "us-east-1", sandbox=sandbox)
    assert service.host.endswith(".us-east-1.amazonaws.com")
    assert service.check_credentials()
    assert service.account_balance() == 100.0


def test_dallinger_creates_extends_lists_and_expires_hits(service, dallinger_hit):
    first = dallinger_hit()
    other = dallinger_hit(annotation="experiment-8")
    assert (first["status"], first["reward"]) == ("Assignable", 0.5)
    found = list(service.get_hits(lambda hit: hit["annotation"] == "experiment-7"))
    assert [each["id"] for each in found] == [first["id"]]
    extended = service.extend_hit(first["id"], number=2, duration_hours=3)
    assert (extended["max_assignments"], extended["assignments_available"]) == (3, 3)
    assert extended["expiration"] - first["expiration"] == timedelta(hours=3)
    for hit in (first, other):
        assert service.expire_hit(hit["id"])
        assert service.get_hit(hit["id"])["status"] == "Reviewable"
    assert service.account_balance() == 100.0


@pytest.mark.slow
def test_dallinger_approves_and_pays_a_bonus(dallinger, service, mturk, worker):
    assignment_id = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    assignment = service.get_assignment(assignment_id)
    assert (assignment["status"], assignment["worker_id"]) == ("Submitted", worker.worker_id)
    assert service.approve_assignment(assignment_id)
    assert service.grant_bonus(assignment_id, 1.25, "Thorough")
    assert service.get_assignment(assignment_id)["status"] == "Approved"
    assert service.account_balance() == 100 - 0.63 - 1.25
    with pytest.raises(dallinger.MTurkServiceException):
        service.approve_assignment(assignment_id)
    assert service.get_assignment("NONE") is None


def test_dallinger_grants_raises_lists_and_revokes_qualifications(dallinger, service, worker):
    created = service.create_qualification_type("Group A", "Was in group A")
    with pytest.raises(dallinger.DuplicateQualificationNameError):
        service.create_qualification_type("Group A", "Again")
    assert service.get_qualification_type_by_name("Group A")["id"] == created["id"]
    assert service.assign_named_qualification("Group A", worker.worker_id, 1)
    assert service.increment_named_qualification_score("Group A", worker.worker_id)["score"] == 2
    assert service.increment_qualification_score(created["id"], worker.worker_id)["score"] == 3
    workers = list(service.get_workers_with_qualification(created["id"]))
    assert workers == [{"id": worker.worker_id, "score": 3}]
    assert service.revoke_qualification(created["id"], worker.worker_id)
    with pytest.raises(dallinger.RevokedQualification):
        service.current_qualification_score(created["id"], worker.worker_id)
    assert service.dispose_qualification_type(created["id"])


def test_dallingers_requirements_keep_workers_out(dallinger, service, dallinger_hit, make_worker):
    group = service.create_qualification_type("Group A", "Was in group A")["id"]
    requirement = dallinger.MTurkQualificationRequirements.must_not_have(group)
    hit = dallinger_hit(qualifications=[requirement])
    member, newcomer = make_worker("bea"), make_worker("cleo")
    service.assign_qualification(group, member.worker_id, 1)
    with refused(exceptions.NotQualified, "held"):
        submit(member, hit["id"])
    submit(newcomer, hit["id"])
    assert models.Assignment.objects.get().worker == newcomer


# psiTurk


@pytest.fixture
def psiturk(foreign, led_to_the_bridge, keys):
    module = importlib.import_module("psiturk.amt_services")

    def connect(mode):
        config = ConfigParser()
        config["AWS Access"] = {
            "aws_access_key_id": keys["access_key_id"],
            "aws_secret_access_key": keys["secret_access_key"],
        }
        return module.MTurkServices(config, mode=mode)

    return connect


def psiturk_hit(**changes):
    return {
        "title": "Stroop",
        "description": "Name the colours.",
        "keywords": "psychology, colours",
        "reward": 0.5,
        "duration": timedelta(hours=1),
        "lifetime": timedelta(days=1),
        "max_assignments": 2,
        "ad_location": "https://study.example/ad?mode=live",
        "approve_requirement": 95,
        "number_hits_approved": 0,
        "require_master_workers": False,
        "us_only": False,
        "require_qualification_ids": [],
        "block_qualification_ids": [],
        "advanced_qualifications": [],
    } | changes


@pytest.mark.slow
def test_psiturk_runs_a_study(psiturk, make_worker):
    services = psiturk("sandbox")
    assert services.check_balance().data == "100.00"
    hit = services.create_hit(psiturk_hit()).data["HITId"]
    first, second = (submit(make_worker(name), hit) for name in ("bea", "cleo"))
    assignments = services.get_assignments("Submitted", hit).data
    assert {each["assignmentId"] for each in assignments} == {first, second}
    assert services.approve_assignment(first).success
    assert services.bonus_assignment(first, None, 0.25, "Quick").success
    assert services.reject_assignment(second).success
    assert services.get_assignment(second).data["status"] == "Rejected"
    assert services.unreject_assignment(second).success
    assert services.get_assignment(second).data["status"] == "Approved"
    assert services.check_balance().data == "98.75"
    assert services.extend_hit(hit, assignments_increment=3, expiration_increment=60).success
    assert services.get_hit(hit).data.options["max_assignments"] == 5
    assert services.expire_hit(hit).success
    assert services.get_hit(hit).data.options["is_expired"]
    assert services.delete_hit(hit).success
    assert services.get_all_hits().data == []
    assert services.check_balance().data == "98.75"
