from dataclasses import replace
from decimal import Decimal
from unittest.mock import patch

import pycountry
import pytest
from django.core.management import call_command

from annotation.models import Study
from annotation.protocols.records import Qualifications
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import save_draft
from hits import collect, exceptions, models, publications
from hits.plans import draft_batch, plan_batch
from hits.requirements import country_error, has_languages, requirements, send_exclusions
from marketplace.exceptions import MarketplaceError
from marketplace.models import QualificationType
from tests.annotation.studies import alternatives_study
from tests.codes import refused_naming
from tests.hits.wire import answer_lost, unreachable
from tests.hits.work import hand_in, hit_on, hits_there
from tests.marketplace.conftest import submit

pytestmark = pytest.mark.django_db
CREATE_TYPE, GRANT = "CreateQualificationType", "AssociateQualificationWithWorker"


@pytest.mark.slow
def test_workers_of_an_earlier_round_and_at_the_maximum_are_excluded(study, client, ann, bob):
    first = launch(study, client, max_per_worker=2)
    for item in ("d0", "d1"):
        hand_in(ann, hit_on(first, item), {"alpha": 10, "beta": 20})
    hand_in(bob, hit_on(launch(study, client, round=2), "d0"), {"alpha": 10, "beta": 20})
    collect.collect_batch(batch=first, client=client)
    assert not may_take(ann, hit_on(first, "d2"))
    assert may_take(bob, hit_on(first, "d2"))
    third = launch(study, client, round=3, excluded_rounds=[1])
    assert not may_take(ann, hit_on(third, "d1"))
    assert may_take(bob, hit_on(third, "d1"))


def plan(study, *, worker_ids=(), **settings) -> models.Batch:
    terms = {"reward_usd": Decimal("0.05"), "max_assignments": 1} | settings
    draft = draft_batch(study=study, **{"title": "Rate", "description": "Read and rate."}, **terms)
    return plan_batch(draft=draft, excluded_workers=worker_ids).batch


def launch(study, client, **settings) -> models.Batch:
    batch = plan(study, **settings)
    publications.publish_batch(batch=batch, client=client)
    return batch


def may_take(worker, hit: models.Hit) -> bool:
    try:
        submit(worker, hit.hit_id)
    except MarketplaceError:
        return False
    return True


def requirements_there(client, batch) -> dict[str, str]:
    hit = client.get_hit(HITId=batch.hits.first().hit_id)["HIT"]
    rows = hit.get("QualificationRequirements", [])
    return {each["QualificationTypeId"]: each["Comparator"] for each in rows}


def test_countries_rates_and_masters_become_requirements(study, client, ann, bob):
    rows = requirements(countries=["DE", "AT"], min_approval_percent=95, min_approved=100)
    batch = launch(study, client, requirements=rows, needs_masters=True)
    assert requirements_there(client, batch) == {
        "00000000000000000071": "In",
        "000000000000000000L0": "GreaterThanOrEqualTo",
        "00000000000000000040": "GreaterThanOrEqualTo",
        "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH": "Exists",
    }
    batch = launch(study, client, requirements=requirements(countries=["DE"]), round=2)
    ann.country, bob.country = "DE", "FR"
    for worker in (ann, bob):
        worker.save()
    assert may_take(ann, hit_on(batch, "d0"))
    assert not may_take(bob, hit_on(batch, "d1"))


def test_languages_are_required_of_workers_who_say_that_they_know_them(study, client, ann, bob):
    rows = requirements(languages=["de", "gsw", "de", "en"])
    assert rows == [
        {"QualificationTypeId": "ASSAYLANGUAGEDEU", "Comparator": "Exists"},
        {"QualificationTypeId": "ASSAYLANGUAGEGSW", "Comparator": "Exists"},
        {"QualificationTypeId": "ASSAYLANGUAGEENG", "Comparator": "Exists"},
    ]
    batch = launch(study, client, requirements=rows)
    ann.languages, bob.languages = ["de", "gsw", "en"], ["de", "en"]
    for worker in (ann, bob):
        worker.save()
    assert may_take(ann, hit_on(batch, "d0"))
    assert not may_take(bob, hit_on(batch, "d1"))
    assert has_languages(client)
    with patch("hits.requirements.ANY_LANGUAGE", "ASSAYLANGUAGEQQQ"):
        assert not has_languages(client)  # as a marketplace that has no such qualification


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"countries": ["DE", "uk", "XX"]}, ("“uk”", "GB", "“XX”")),
        ({"countries": [country.alpha_2 for country in pycountry.countries][:31]}, ("30",)),
        ({"min_approval_percent": 101}, ("0", "100", "101")),
        ({"min_approval_percent": -1}, ("0", "100", "-1")),
        ({"min_approved": 2**31}, ("2147483648",)),
        ({"languages": ["xx"]}, ("“xx”",)),
    ],
)
def test_requirements_that_no_worker_meets_are_refused_with_all_that_is_wrong(options, named):
    with refused_naming(exceptions.BatchUnfit, *named):
        requirements(**options)
    assert requirements(countries=["DE", "DE"]) == requirements(countries=["DE"])
    for code, meant in (("uk", "GB"), ("us", "US"), ("XX", "“XX”"), ("Germany", "“Germany”")):
        assert meant in country_error(code)
    assert country_error("GB") is None


def test_workers_of_a_list_are_excluded_silently_and_once(study, client, wire, ann, bob):
    launch(study, client, round=2)
    assert wire.calls[CREATE_TYPE] == 0
    batch = launch(study, client, worker_ids=[ann.worker_id, "A0UNKNOWNWORKER"])
    n_calls = (wire.calls[CREATE_TYPE], wire.calls[GRANT])
    assert send_exclusions(batch=batch, client=client) == 0
    assert (wire.calls[CREATE_TYPE], wire.calls[GRANT]) == n_calls == (1, 2)
    assert not may_take(ann, hit_on(batch, "d0"))
    assert may_take(bob, hit_on(batch, "d0"))
    states = dict(models.Exclusion.objects.values_list("worker__worker_id", "state"))
    assert states == {ann.worker_id: "confirmed", "A0UNKNOWNWORKER": "refused"}


@pytest.mark.parametrize("operation", [CREATE_TYPE, GRANT])
@pytest.mark.parametrize("fault", [answer_lost, unreachable])
def test_a_lost_answer_makes_no_second_type_and_no_gap(study, client, wire, ann, operation, fault):
    batch = plan(study, worker_ids=[ann.worker_id])
    wire.fail(operation, fault)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        publications.publish_batch(batch=batch, client=client)
    assert not hits_there(client)
    publications.publish_batch(batch=batch, client=client)
    assert QualificationType.objects.count() == 1
    assert not may_take(ann, hit_on(batch, "d0"))


def test_a_later_wave_waits_for_the_earlier_one_and_for_other_workers(study, client, make_worker):
    study.items.exclude(key="d0").delete()
    batch = launch(study, client, max_assignments=3, wave_size=2)
    first, second = models.Hit.objects.of(batch).order_by("wave")
    assert [hit["MaxAssignments"] for hit in hits_there(client)] == [2]
    ann, bob, cyd = (make_worker(name) for name in ("ann2", "bob2", "cyd2"))
    hand_in(ann, first, {"alpha": 10, "beta": 20})
    collect.collect_batch(batch=batch, client=client)
    assert publications.publish_batch(batch=batch, client=client).n_hits == 0
    hand_in(bob, first, {"alpha": 10, "beta": 20})
    collect.collect_batch(batch=batch, client=client)
    assert publications.publish_batch(batch=batch, client=client).n_hits == 1
    second.refresh_from_db()
    assert not may_take(ann, second)
    assert not may_take(bob, second)
    hand_in(cyd, second, {"alpha": 10, "beta": 20})
    assert collect.collect_batch(batch=batch, client=client).n_new == 1
    assert sorted(hit["MaxAssignments"] for hit in hits_there(client)) == [1, 2]


@pytest.mark.usefixtures("site")
def test_publishing_freezes_the_protocol_and_requires_its_workers(client):
    study: Study = alternatives_study()
    rules = Qualifications(countries=("US",), least_approval_percent=95)
    save_draft(study=study, document=replace(read_protocol("alternatives"), qualifications=rules))
    call_command("publish_study", study.slug, reward=Decimal("0.63"))
    batch = models.Batch.objects.get()
    assert batch.protocol is not None
    assert batch.protocol.frozen_at is not None
    assert batch.max_assignments == 3
    required = hits_there(client)[0]["QualificationRequirements"]
    by_type = {one["QualificationTypeId"]: one for one in required}
    assert by_type["00000000000000000071"]["LocaleValues"] == [{"Country": "US"}]
    assert by_type["000000000000000000L0"]["IntegerValues"] == [95]
