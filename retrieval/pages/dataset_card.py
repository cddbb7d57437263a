"""The sizes of a test collection in the card of a study's dataset."""

from __future__ import annotations

from annotation.models import Judgment, Study
from retrieval.exports.qrels import has_qrels, judgment_source, sizes_of


def has_judged_qrels(study: Study) -> bool:
    judged = Judgment.objects.of(study).accepted().filter(submission__round=1)
    return has_qrels(study) and judged.exists()


def collection_section(study: Study) -> str:
    """The sizes of the test collection, without the target counted as relevant and with it."""
    source = judgment_source(study)
    sizes = sizes_of(source)
    rows = (
        ("Topics assessed", sizes.n_assessed, None),
        ("Topics with a relevant document", sizes.n_with_relevant, sizes.n_assessed),
        ("Judged documents", sizes.n_judgments, None),
        ("Relevant documents", sizes.n_relevant, sizes.n_relevant + sizes.n_assessed),
        ("Relevant per topic that has any", sizes.mean_relevant, sizes.mean_relevant + 1),
        ("Relevant per topic, of all", sizes.mean_relevant_of_all, sizes.mean_relevant_of_all + 1),
        ("Judged per topic", sizes.judged_per_topic, None),
        ("Share of judged documents that are relevant", sizes.prevalence, None),
    )
    cells = (f"| {name} | {_count(a)} | {_count(b)} |" for name, a, b in rows)
    histogram = ", ".join(f"{n} in {count:,}" for n, count in sizes.histogram.items())
    return "\n\n".join(
        [
            "## Test collection",
            f"Qrels by {source.rule} of the assessors, round {source.round}. A topic is an item, a "
            "document a candidate; with the target counted, each topic has one relevant document "
            "more, which nobody judged.",
            "\n".join(["| | judged | with the target |", "|---|---|---|", *cells]),
            f"Relevant documents by topic: {histogram}.",
        ]
    )


def _count(value: float | None) -> str:
    if value is None:
        return ""
    if value != value:
        return "undefined"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3f}"
