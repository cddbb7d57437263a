"""Where workers are: stated once, kept with what the network said then, changed by operators."""

from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter
from marketplace.models import LocationStatement, WorkerAccount
from marketplace.people.countries import locale_error
from marketplace.users import User

Source = LocationStatement.Source


@transaction.atomic
def state_location(
    *, worker: WorkerAccount, country: str, subdivision: str, network_country: str = ""
) -> None:
    """The worker's own word, which is taken once: HITs are given out by it."""
    locked = WorkerAccount.objects.select_for_update().get(pk=worker.pk)
    if (locked.country, locked.subdivision) == (country, subdivision):
        return
    if locked.country:
        raise InvalidParameter(
            _("Your country is settled. If it is wrong, or you have moved, ask the operator.")
        )
    _write(worker, country, subdivision, Source.WORKER, network_country=network_country)


@transaction.atomic
def correct_location(
    *,
    worker: WorkerAccount,
    country: str,
    subdivision: str = "",
    reason: str,
    user: User | None = None,
) -> None:
    """An operator's word, with the reason; what was stated before stays to be seen."""
    if not country or (error := locale_error(country, subdivision)):
        raise InvalidParameter(error if country else _("Say a country."), code="unknown_place")
    if not reason.strip():
        raise InvalidParameter(_("Say why the country is changed."))
    _write(worker, country, subdivision, Source.OPERATOR, reason=reason.strip())
    detail = {"country": country, "subdivision": subdivision}
    note("worker.correct_location", subject=worker.worker_id, user=user, detail=detail)


def _write(
    worker: WorkerAccount,
    country: str,
    subdivision: str,
    source: str,
    *,
    network_country: str = "",
    reason: str = "",
) -> None:
    LocationStatement.objects.create(
        worker=worker,
        country=country,
        subdivision=subdivision,
        source=source,
        network_country=network_country,
        reason=reason[:500],
        created_at=clock.now(),
    )
    worker.country, worker.subdivision = country, subdivision
    worker.save(update_fields=["country", "subdivision"])
