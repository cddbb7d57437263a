"""The metrics that pages offer to score a study by, and what these need."""

from functools import cache

from django.db.models import Exists, OuterRef

from annotation.models import Item, Study
from annotation.pages.study import stage_facts
from metrics.models_here import has_model
from metrics.scorers.registry import Description, available


def has_references(study: Study) -> bool:
    """Whether an item has a reference; asked for with what the page's stages say."""
    references = Item.objects.filter(study=OuterRef("pk")).exclude(reference="").order_by()
    facts = stage_facts(study, has_references=Exists(references))
    return bool(facts["has_references"])


@cache
def metrics_on_offer() -> tuple[Description, ...]:
    """The metrics a page may start: none that asks an endpoint, which may cost money.

    Known once for a process, since describing them builds every scorer.
    """
    return tuple(metric for metric in available() if "endpoint" not in metric.requires)


@cache
def needing_references() -> frozenset[str]:
    """Those on offer that compare a response with a reference."""
    return frozenset(metric.name for metric in metrics_on_offer() if "reference" in metric.needs)


@cache
def lacking_models() -> tuple[str, ...]:
    """Those on offer whose model this server does not have."""
    return tuple(metric.name for metric in metrics_on_offer() if not has_model(metric.name))
