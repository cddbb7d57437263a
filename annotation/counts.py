"""Counts as subqueries of their own, so that several of them never multiply each other."""

from typing import Any

from django.db.models import Aggregate, Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce


def counted(rows: QuerySet[Any], path: str, number: Aggregate | None = None) -> Coalesce:
    """How many rows lead to the object of the outer query, or another number of theirs."""
    of_one = rows.filter(**{path: OuterRef("pk")}).order_by().values(path)
    # Of rows and not of their keys: an index that leads from one to the other is enough.
    per_one = of_one.annotate(n=number or Count("*")).values("n")
    return Coalesce(Subquery(per_one, output_field=IntegerField()), 0)
