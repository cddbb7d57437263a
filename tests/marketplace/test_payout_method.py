"""How and when workers are paid: chosen by them, encrypted, exported for what is not paid yet."""

import csv
import io
from datetime import UTC, date, datetime

import pytest
from django.core.management import call_command

from accounts.models import User
from marketplace.models import PayoutBatch, PayoutMethod
from marketplace.money import payouts
from marketplace.money.payout_methods import next_payout_date
from marketplace.people.personal_data import export
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.test_worker_site import text_of

IBAN = "CH93 0076 2011 6238 5295 7"


def n_without_method(client):
    page = client.get("/marketplace-operator/payouts/")
    return [batch.without_method_count for batch in page.context["page"]]


def test_a_worker_says_how_to_be_paid_and_the_batch_has_it(mturk, ada, worker, client, settings):
    settings.MARKETPLACE_PAYOUT_DAY = 15
    values = {"method": "Bank transfer", "details": IBAN}
    for wrong in ({"proof": "guessed"}, {"proof": PASSWORD, "method": "Cash"}):
        ada.post("/worker/payout/", values | wrong)
        assert not PayoutMethod.objects.exists()
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    batch = payouts.make_batch()
    client.force_login(User.objects.create_user("olga", password=PASSWORD, is_staff=True))
    assert n_without_method(client) == [1]

    page = text_of(ada.post("/worker/payout/", values | {"proof": PASSWORD}, follow=True))
    for part in ("95 7", "$0.63", "-15"):
        assert part in page
    assert IBAN not in page
    assert IBAN not in PayoutMethod.objects.get().encrypted_details
    assert export(worker)["data"]["PayoutMethod"][0]["encrypted_details"] == IBAN
    assert n_without_method(client) == [0]
    answer = client.post(f"/marketplace-operator/payouts/{batch.pk}/export/")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["method"], row["details"]) == ("Bank transfer", IBAN)

    ada.post("/worker/payout/", values | {"proof": PASSWORD, "details": "=1+1"})
    User.objects.filter(pk=worker.user.pk).update(username="+E2")  # the amount's cell
    assert "'+E2" in list(payouts.export([batch]))[1]
    assert list(payouts.export([batch]))[1][-1] == "'=1+1"
    payouts.mark_paid(PayoutBatch.objects.get().payouts.all())
    assert list(payouts.export([batch]))[1][-2:] == ("", "")


def test_details_are_encrypted_anew_with_the_keys(ada, settings):
    ada.post("/worker/payout/", {"method": "Gift card", "details": "a@b", "proof": PASSWORD})
    before = PayoutMethod.objects.get().encrypted_details
    new = "bmV3LWtleS1vZi0zMi1ieXRlcy1mb3ItdGVzdHMtISE="
    settings.ENCRYPTION_KEYS = [new, *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    settings.ENCRYPTION_KEYS = [new]
    assert PayoutMethod.objects.get().encrypted_details != before
    assert "a@b"[-4:] in text_of(ada.get("/worker/payout/"))


@pytest.mark.parametrize(
    ("today", "day", "expected"),
    [
        ((2026, 1, 10), 15, date(2026, 1, 15)),
        ((2026, 1, 15), 15, date(2026, 1, 15)),
        ((2026, 12, 16), 15, date(2027, 1, 15)),
        ((2026, 2, 28), 1, date(2026, 3, 1)),
        ((2026, 1, 10), 0, None),
    ],
)
def test_the_next_date_follows_from_the_day(settings, today, day, expected):
    settings.MARKETPLACE_PAYOUT_DAY = day
    assert next_payout_date(datetime(*today, tzinfo=UTC)) == expected
