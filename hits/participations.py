"""How participants stand at their recruiter whose work waits for a decision, as the marketplace
says: mirrored for the review desk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hits.models import Participation, Recruitment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hits.recruiter_api import ParticipationRecord

FACTS = ("worker_id", "state", "outcome", "reported")


def store_participations(recruitment: Recruitment, records: Iterable[ParticipationRecord]) -> None:
    """Store those of a study, in place of what was known of them."""
    mine = [one for one in records if one.study == recruitment.public_id]
    told = {tuple(getattr(one, name) for name in FACTS) for one in mine}
    known = Participation.objects.filter(recruitment=recruitment)
    stored = {row[1:]: row[0] for row in known.values_list("pk", *FACTS)}
    if gone := [key for facts, key in stored.items() if facts not in told]:
        known.filter(pk__in=gone).delete()
    Participation.objects.bulk_create(
        Participation(recruitment=recruitment, **dict(zip(FACTS, facts, strict=True)))
        for facts in sorted(told - stored.keys())
    )
