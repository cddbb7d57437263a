"""What the review desk says of a participant whom a recruiter pays: their other items, which are
decided alike, and what is between the recruiter and a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hits.drafts import currency_of
from hits.models import Assignment, RecruiterCall


@dataclass(frozen=True)
class ParticipantNote:
    """`items` are all of the participant's in the batch, the one looked at among them; `problems`
    what somebody must look after at the recruiter, or what it refused."""

    items: Sequence[Assignment]
    problems: Sequence[str]
    currency: str

    @property
    def is_paid_in_dollars(self) -> bool:
        return self.currency == "USD"


def participant_note(assignment: Assignment) -> ParticipantNote | None:
    """Of an assignment that a participant did; None of any other."""
    batch = assignment.hit.batch
    if not batch.is_recruited:
        return None
    mine = Assignment.objects.of(batch).filter(worker=assignment.worker_id)
    calls = RecruiterCall.objects.to_look_after().filter(
        recruitment__batch=batch, worker_id=assignment.worker.worker_id
    )
    calls = calls.exclude(problem="")
    return ParticipantNote(
        items=list(
            mine.select_related("hit__item")
            .prefetch_related("drafts")
            .order_by("submitted_at", "pk")
        ),
        problems=list(calls.order_by("-is_uncertain", "-number").values_list("problem", flat=True)),
        currency=currency_of(batch),
    )
