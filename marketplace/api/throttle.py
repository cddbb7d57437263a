"""Rate limits: each access key has a bucket of tokens, a call takes one, and time fills it.

MARKETPLACE_REQUESTS_PER_SECOND says how fast (0 for no limit), MARKETPLACE_REQUEST_BURST how
many calls may come at once. The wire's time is the machine's.
"""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from marketplace.exceptions import ProtocolError
from marketplace.models import AccessKey, RateBucket

THROTTLED = "ThrottlingException"


def take_token(access_key: AccessKey, *, now: datetime) -> None:
    """Count a call; raise what AWS answers where there have been too many."""
    rate = float(getattr(settings, "MARKETPLACE_REQUESTS_PER_SECOND", 0))
    if rate:
        _take_token(access_key, rate, now=now)


@transaction.atomic
def _take_token(access_key: AccessKey, rate: float, *, now: datetime) -> None:
    burst = max(1.0, float(getattr(settings, "MARKETPLACE_REQUEST_BURST", 0) or 2 * rate))
    bucket, _ = RateBucket.objects.select_for_update().get_or_create(
        access_key=access_key, defaults={"tokens": burst, "filled_at": now}
    )
    seconds = max(0.0, (now - bucket.filled_at).total_seconds())
    tokens = min(burst, bucket.tokens + seconds * rate)
    if tokens < 1:
        raise throttled()
    bucket.tokens, bucket.filled_at = tokens - 1, now
    bucket.save(update_fields=["tokens", "filled_at"])


def throttled() -> ProtocolError:
    """What clients wait after and try again."""
    return ProtocolError(THROTTLED, "Rate exceeded")
