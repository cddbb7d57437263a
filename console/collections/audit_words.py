"""What was counted in an audit, as its page says it: codes as words, and cells."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from console.code_names import code_name
from presentation.documents import Number
from retrieval.audit.text import SIZES

HISTOGRAM = " histogram"


@dataclass(frozen=True)
class Fact:
    """A number, or a text, that was counted of a file: its section, and its row of a table."""

    section: str
    row: int | None
    name: str
    value: float | str | None


SECTIONS = {
    "sizes": gettext_noop("as they are"),
    "sizes histogram": gettext_noop("as they are"),
    "sizes_cleaned": gettext_noop("cleaned: each picture once, never the target"),
    "sizes_cleaned histogram": gettext_noop("cleaned: each picture once, never the target"),
    "repeats": gettext_noop("pictures more than once in a row"),
    "own_targets": gettext_noop("targets in their own pool"),
    "hubs": gettext_noop("hubs"),
    "hubs largest": gettext_noop("largest hubs"),
    "self_consistency": gettext_noop("the same picture judged twice"),
}
NUMBERS = {
    "n_topics": gettext_noop("topics"),
    "n_documents": gettext_noop("documents"),
    "n_lines": gettext_noop("lines"),
    "n_rows": gettext_noop("rows"),
    "n_negative": gettext_noop("grades below 0"),
    "n_tied": gettext_noop("documents that are tied with another"),
    "n_infinite": gettext_noop("infinite scores"),
    "n_targets": gettext_noop("targets"),
    "n_alternatives": gettext_noop("alternatives"),
    "n_empty_rows": gettext_noop("rows without a judgment"),
    "n_hits": gettext_noop("HITs"),
    "n_workers": gettext_noop("workers"),
    "n_slots": gettext_noop("slots"),
    "n_pairs": gettext_noop("pairs"),
    "n_different": gettext_noop("judged differently"),
    "n_judged": gettext_noop("judged"),
    "n_distinct": gettext_noop("distinct"),
    "n_assessors": gettext_noop("assessors"),
    "n_judged_by_several": gettext_noop("documents with several grades"),
    "n_surplus": gettext_noop("slots too many"),
    "n_within_block": gettext_noop("repeated within a block of positions"),
    "n_ticked": gettext_noop("of them ticked"),
    "unique_least": gettext_noop("different pictures of a row, fewest"),
    "unique_most": gettext_noop("different pictures of a row, most"),
    "unique_mean": gettext_noop("different pictures of a row, mean"),
    "n": gettext_noop("number"),
    "share_of_slots": gettext_noop("share of slots"),
    "relevance": gettext_noop("share relevant"),
    "relevance_elsewhere": gettext_noop("share relevant of other documents"),
    "least_share": gettext_noop("from which share of the targets on"),
    "ci_low": gettext_noop("interval from"),
    "ci_high": gettext_noop("to"),
    "ci_method": gettext_noop("interval by"),
}
CLAIM_TITLES = {
    "assessed": gettext_noop("topics assessed"),
    "with_relevant": gettext_noop("topics with a relevant document"),
    "mean_relevant": gettext_noop("relevant documents a topic"),
    "judged_per_topic": gettext_noop("judged documents a topic"),
    "prevalence": gettext_noop("share of judged documents that are relevant"),
}


def fact_cell(fact: Fact) -> str | Number:
    """A number, whole if it is, or the text."""
    return code_name(fact.value) if isinstance(fact.value, str) else counted_cell(fact.value)


def counted_cell(number: float | None) -> Number:
    """Whole where it is."""
    return Number(number, 0 if number is not None and float(number).is_integer() else 4)


def words_of(code: str) -> str:
    """A code as words: `n_documents` becomes `documents`."""
    titles = SECTIONS | SIZES | NUMBERS | CLAIM_TITLES
    return _(titles[code]) if code in titles else code_name(code).removeprefix("n ")


def name_of(fact: Fact) -> str:
    """What a number is of: in a histogram, topics by how many relevant documents they have."""
    if fact.section.endswith(HISTOGRAM):
        return _("topics with {n} relevant").format(n=fact.name)
    return words_of(fact.name)
