"""What a protocol says of a batch holds on the marketplace, unless the launch says otherwise."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.core.management import call_command

from annotation.models import Study
from annotation.protocols.records import Time
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import save_draft
from hits.models import Batch
from hits.qualifications import protocol_terms
from tests.annotation.studies import alternatives_study, rating_study
from tests.hits.work import hits_there

pytestmark = pytest.mark.django_db


def test_a_study_without_a_protocol_asks_three_of_anybody() -> None:
    terms = protocol_terms(rating_study())
    assert (terms.countries, terms.max_assignments, terms.min_approval_percent) == ([], 3, None)


@pytest.mark.usefixtures("site")
def test_publishing_freezes_the_protocol_and_requires_its_workers(client):
    study: Study = alternatives_study()
    save_draft(study=study, document=read_protocol("alternatives"))
    call_command("publish_study", study.slug, reward=Decimal("0.63"))
    batch = Batch.objects.get()
    assert batch.protocol is not None
    assert batch.protocol.frozen_at is not None
    assert batch.max_assignments == 1
    required = hits_there(client)[0]["QualificationRequirements"]
    by_type = {one["QualificationTypeId"]: one for one in required}
    assert by_type["00000000000000000071"]["LocaleValues"] == [{"Country": "US"}]
    assert by_type["000000000000000000L0"]["IntegerValues"] == [95]


@pytest.fixture
def timed_study() -> Study:
    """A study whose protocol allows nine and a half minutes for a page."""
    study = alternatives_study()
    document = read_protocol("alternatives")
    save_draft(study=study, document=replace(document, time=Time(allowed_seconds=570)))
    return study


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(("options", "minutes"), [({}, 10), ({"minutes": 20}, 20)])
def test_a_hit_may_take_as_long_as_the_protocol_or_the_launch_says(
    client, timed_study, options, minutes
) -> None:
    call_command("publish_study", timed_study.slug, reward=Decimal("0.63"), **options)
    assert hits_there(client)[0]["AssignmentDurationInSeconds"] == 60 * minutes
