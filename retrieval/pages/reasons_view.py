"""What the page of reasons shows: terms with their counts, and the reasons that mention one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.core.paginator import Page
from django.http import HttpRequest

from annotation.agreement import rounds_of
from console.tables import page_of, search_words
from retrieval.exports.qrels import Source, has_qrels, judgment_source
from retrieval.exports.reasons import (
    Reason,
    ReasonText,
    count_terms_of,
    read_terms,
    reason_texts,
    reasons_of,
)
from stats.quality.reason_terms import term_pattern

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy

MOST_REASONS = 20_000
"""Read for a page; `reason_terms` and `export_qrels --reasons` have all."""
ABOUT = ("relevant", "other")


@dataclass(frozen=True)
class ReasonsView:
    """Reasons of a round: those listed, and how many mention each term."""

    rounds: list[int]
    round: int
    term: str
    words: str
    about: str
    counts: dict[str, Any]
    page: Page[Any]
    reasons: list[Reason]
    is_cut: bool


def reasons_view(request: HttpRequest, study: CountedStudy) -> ReasonsView | None:
    """What the address asks for; None where no documents are judged, or nothing is written."""
    rounds = rounds_of(study)
    if not rounds or not has_qrels(study):
        return None
    round = _round(request, rounds)
    source = judgment_source(study, round=round)
    texts = reason_texts(source, most=MOST_REASONS + 1)
    is_cut, texts = len(texts) > MOST_REASONS, texts[:MOST_REASONS]
    if not texts:
        return None
    terms = read_terms()
    term = request.GET.get("term", "")
    term = term if term in terms else ""
    about = request.GET.get("about", "")
    about = about if about in ABOUT else ""
    words = search_words(request)
    page = page_of(request, _chosen(texts, terms.get(term, []), about, words))
    return ReasonsView(
        rounds=rounds,
        round=round,
        term=term,
        words=words,
        about=about,
        counts=_counts(study, source, texts),
        page=page,
        reasons=list(reasons_of(source, list(page))),
        is_cut=is_cut,
    )


def _round(request: HttpRequest, rounds: list[int]) -> int:
    text = request.GET.get("round", "")
    return int(text) if text in map(str, rounds) else rounds[0]


def _chosen(
    texts: list[ReasonText], words_of_term: list[str], about: str, words: str
) -> list[ReasonText]:
    """The reasons that mention a term and hold these words, where any are named."""
    if about:
        texts = [one for one in texts if one.is_relevant == (about == "relevant")]
    if words_of_term:
        pattern = term_pattern("term", words_of_term)
        texts = [one for one in texts if pattern.search(one.text)]
    return [one for one in texts if words.casefold() in one.text.casefold()] if words else texts


def _counts(study: CountedStudy, source: Source, texts: list[ReasonText]) -> dict[str, Any]:
    """The counts of a round, made once for each version of the judgments."""
    version = f"{study.pk}:{study.created_at.timestamp()}:{study.judgments_version}"
    key = f"reason-terms:{version}:{source.round}:{len(texts)}"
    counts: dict[str, Any] | None = cache.get(key)
    if counts is None:
        counts = count_terms_of(texts).record()
        cache.set(key, counts)
    return counts
