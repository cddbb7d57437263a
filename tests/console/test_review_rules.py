"""The numbers of the review desk's rules, whatever somebody types."""

import pytest
from django.urls import reverse

from tests.annotation.studies import rated_study

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "query",
    [
        {"rule": "approve-unflagged", "hours": "99999999999999999999"},
        {"rule": "reject-fast", "divisor": "1e300", "text": "Too fast."},
        {"rule": "bonus-workers", "least_approved": "9" * 20, "amount_usd": "1", "text": "x"},
    ],
)
def test_numbers_beyond_reason_are_refused_at_their_field(rosa, researcher, query):
    study = rated_study("mine", owner=researcher)
    answer = rosa.get(reverse("console:review-rules", args=[study.slug]), query)
    assert answer.status_code == 200
    assert "less than or equal to" in answer.content.decode()
