from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from accounts.roles import Permission
from annotation.dataset import DatasetTable, register_dataset_table
from annotation.models import Judgment, Study
from annotation.models.studies import CountedStudy
from annotation.pages.downloads import LabelFile, register_label_file
from annotation.pages.stages import Panel, register_panel
from console.access import person
from console.api.endpoint import register_subject
from console.registrations import JobAccess, register_job_access
from results.pages import SubjectPages, register_pages
from retrieval.collections import DELETE_COLLECTION
from retrieval.exports.qrels import (
    has_qrels,
    judgment_source,
    qrel_rows,
    sizes_of,
    stream_label_qrels,
)
from retrieval.models import Collection
from retrieval.pages.collections import collection_for, collection_page
from retrieval.result_kinds.audit import AUDIT
from retrieval.result_kinds.comparison import COMPARE
from retrieval.result_kinds.evaluation import EVALUATE
from retrieval.result_kinds.machine import COMPARE_MACHINE
from retrieval.result_kinds.reuse import ESTIMATE_REUSE


def _collections(request: HttpRequest, study: CountedStudy) -> dict[str, Any] | None:
    if study.kind == Study.Kind.RATING:
        return None
    rows = list(Collection.objects.visible_to(person(request)).filter(studies=study.pk))
    return {"collections": rows} if rows else {}


def has_judged_qrels(study: Study) -> bool:
    judged = Judgment.objects.of(study).accepted().filter(submission__round=1)
    return has_qrels(study) and judged.exists()


def collection_section(study: Study) -> str:
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


register_dataset_table(
    DatasetTable(
        60,
        "qrels",
        "relevance of each candidate (document) to its item (topic), by majority",
        qrel_rows,
        has_judged_qrels,
        collection_section,
    )
)
register_panel(
    Panel(
        name="collections",
        title=gettext_lazy("Test collections"),
        page="collections",
        place=80,
        template="retrieval/_study_collections.html",
        describe=_collections,
        promise=gettext_lazy("The collections that these judgments belong to."),
        outline="bars",
        permission=Permission.VIEW_SYSTEMS,
        is_of_study=False,
    )
)
register_label_file(
    "txt",
    LabelFile("text/plain; charset=utf-8", stream_label_qrels, word="qrels", is_offered=has_qrels),
)

for kind in (EVALUATE, COMPARE, COMPARE_MACHINE, ESTIMATE_REUSE, AUDIT):
    register_job_access(kind, JobAccess(control=Permission.ANALYSE))
register_job_access(DELETE_COLLECTION, JobAccess(control=Permission.OWN))
register_subject("collection", collection_for)
register_pages(
    "collection",
    SubjectPages(collection_page, "retrieval/base.html", "console:collection-table"),
)
