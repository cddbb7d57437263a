"""How often a recruiter is asked about arrivals that it did not send.

Each arrival that nothing proves is asked about while a browser waits. Whoever makes ids up would
have as many calls made as they send requests, and keep those waiting who were sent: so the same ids
are asked about once in a while, and from one address a few that are unknown of a study. Whoever is
in a study already, or comes by a signed link, is not asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from django.core.cache import cache
from django.utils.crypto import salted_hmac

from marketplace.models import RecruitedStudy
from marketplace.recruiting.problems import NotVerified, Unreachable
from marketplace.recruiting.prolific import Prolific

# A submission may be seen there a moment after its participant is sent.
UNKNOWN_FOR_SECONDS = 15
MOST_UNKNOWN, COUNTED_FOR_SECONDS = 20, 600


def verify_arrival(
    recruiter: Prolific, study: RecruitedStudy, ids: Mapping[str, str], *, address: str
) -> None:
    """NotVerified where the recruiter did not send whoever comes with these ids, as it says or has
    just said; Unreachable where too many from this address were unknown to be asked about more."""
    unknown = _key("unknown-arrival", study, *(f"{name}={ids[name]}" for name in sorted(ids)))
    from_there = _key("unknown-arrivals-from", study, address)
    if problem := cache.get(unknown):
        raise NotVerified(problem)
    if address and cache.get(from_there, 0) >= MOST_UNKNOWN:
        raise Unreachable("Too many arrivals from this address were unknown.")
    try:
        recruiter.verify_arrival(study.external_id, ids)
    except NotVerified as problem:
        cache.set(unknown, str(problem), UNKNOWN_FOR_SECONDS)
        cache.add(from_there, 0, COUNTED_FOR_SECONDS)
        with suppress(ValueError):  # it is over at this moment
            cache.incr(from_there)
        raise


def _key(kind: str, study: RecruitedStudy, *facts: str) -> str:
    """Of a cache, which nobody reads ids or addresses from."""
    return f"{kind}:{study.pk}:{salted_hmac(kind, '&'.join(facts)).hexdigest()}"
