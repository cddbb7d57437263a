"""How workers want to be paid: one of the operator's methods, with details encrypted at rest."""

from calendar import monthrange
from datetime import date, datetime

from django.conf import settings
from django.db import transaction

from encryption import decrypt, encrypt, reencrypt, seal
from marketplace import clock
from marketplace.models import PayoutMethod, WorkerAccount

PURPOSE = "payout details"


def offered_methods() -> dict[str, str]:
    """The operator's methods, by name, each with what its details are."""
    return dict(settings.MARKETPLACE_PAYOUT_METHODS)


def choose_method(*, worker: WorkerAccount, method: str, details: str) -> PayoutMethod:
    """Pay this worker in this way from now on, whatever was chosen before."""
    values = {
        "method": method,
        "encrypted_details": encrypt(details.strip()),
        "details_seal": seal_of(details),
        "changed_at": clock.now(),
    }
    chosen, _ = PayoutMethod.objects.update_or_create(worker=worker, defaults=values)
    return chosen


def details_of(method: PayoutMethod) -> str:
    """The details as the worker wrote them."""
    return decrypt(method.encrypted_details)


def seal_of(details: str) -> str:
    """By which the same details are recognised, however they are spaced and punctuated."""
    plain = "".join(filter(str.isalnum, details.casefold()))
    return seal(plain, purpose=PURPOSE) if plain else ""


def seal_missing() -> None:
    """Seal the details that were given before there were seals."""
    for method in PayoutMethod.objects.filter(details_seal=""):
        if sealed := seal_of(details_of(method)):
            PayoutMethod.objects.filter(pk=method.pk).update(details_seal=sealed)


def next_payout_date(now: datetime) -> date | None:
    """The day of the next payout by the operator's schedule; None where there is none."""
    day = settings.MARKETPLACE_PAYOUT_DAY
    if not day:
        return None
    today = now.date()
    if today.day <= day:
        return today.replace(day=day)
    left = monthrange(today.year, today.month)[1] - today.day
    return date.fromordinal(today.toordinal() + left + day)


@transaction.atomic
def reencrypt_details() -> int:
    """Encrypt all details under the first of ENCRYPTION_KEYS, and return how many changed."""
    n_changed = 0
    for method in PayoutMethod.objects.select_for_update(no_key=True).order_by("pk"):
        stored = reencrypt(method.encrypted_details)
        if stored != method.encrypted_details:
            method.encrypted_details = stored
            method.details_seal = seal_of(decrypt(stored))
            method.save(update_fields=["encrypted_details", "details_seal"])
            n_changed += 1
    return n_changed
