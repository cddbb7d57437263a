"""How many HITs and assignments there are in each state, for monitors and operators."""

from django.db.models import Count, Model, QuerySet

from marketplace.models import Assignment, Hit


def hits_by_status() -> dict[str, int]:
    """Every state, also one that no HIT is in."""
    return dict.fromkeys(Hit.Status.values, 0) | _counts(Hit.objects.all())


def assignments_by_status() -> dict[str, int]:
    """Every state, also one that no assignment is in."""
    return dict.fromkeys(Assignment.Status.values, 0) | _counts(Assignment.objects.all())


def _counts(rows: QuerySet[Model]) -> dict[str, int]:
    counts = rows.order_by().values("status").annotate(n=Count("pk"))
    return {row["status"]: row["n"] for row in counts}
