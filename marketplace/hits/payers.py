"""Who pays for a HIT type: the requester's balance here, until it is handed to a recruiter."""

from django.db import transaction

from marketplace import clock
from marketplace.hits import lifecycle
from marketplace.models import Hit, HitType, PaidBy


@transaction.atomic
def let_recruiter_pay(hit_type: HitType) -> None:
    """From now on a recruiter pays for this HIT type. What is held for its HITs is the requester's
    again, but for assignments that workers of the marketplace hold already: those are paid here,
    as it was promised. There is no way back."""
    hits = Hit.objects.in_group(hit_type).order_by("pk")
    list(hits.locked().values_list("pk", flat=True))  # before the type: who creates HITs holds it
    HitType.objects.filter(pk=hit_type.pk).update(paid_by=PaidBy.RECRUITER)
    hit_type.paid_by = PaidBy.RECRUITER
    now = clock.now()
    for hit in Hit.objects.in_group(hit_type).order_by("pk").locked():
        hit.hit_type = hit_type
        lifecycle.apply_time(hit, now=now)
        lifecycle.refresh(hit, now=now)
