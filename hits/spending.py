"""What was spent, by our record: approved assignments with their fees, and payments beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from django.db.models import Count, F, Sum

from annotation.models import Study
from hits.costs import cost_of_assignment
from hits.models import Assignment, Batch, Payment, Sending


def spent_by_study(studies: Sequence[Study]) -> dict[int, Decimal]:
    """The money spent on each study that ever published a batch, in three statements."""
    batches = {
        batch.pk: batch
        for batch in Batch.objects.filter(study__in=studies).select_related("connection")
    }
    spent: dict[int, Decimal] = defaultdict(Decimal)
    for batch in batches.values():
        spent[batch.study_id] += 0
    approved = (
        Assignment.objects.filter(hit__batch__in=batches, status=Assignment.Status.APPROVED)
        .order_by()
        .values_list("hit__batch", "hit__max_assignments")
        .annotate(n=Count("pk"))
    )
    for pk, size, n in approved:
        batch = batches[pk]
        price = cost_of_assignment(batch, size or batch.max_assignments)
        spent[batch.study_id] += n * price
    payments = Payment.objects.filter(assignment__hit__batch__in=batches, state=Sending.CONFIRMED)
    totals = payments.order_by().values_list("assignment__hit__batch__study")
    for pk, total in totals.annotate(total=Sum(F("amount_usd") + F("fee_usd"))):
        spent[pk] += total
    return dict(spent)
