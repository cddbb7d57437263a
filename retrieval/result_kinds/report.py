from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy

from results.computing import digest_inputs, request_result
from results.kinds import Computed, Given, register_kind
from results.models import Result
from results.tables import Record, Row, Table, Text
from retrieval.models import Collection, ResultType
from retrieval.report.basis import Basis
from retrieval.report.conclusions import Conclusions, Section
from retrieval.result_kinds.base import CollectionKind

if TYPE_CHECKING:
    from accounts.models import User
    from work.models import Job

WRITE_REPORT = "write_collection_report"


def request_report(*, collection: Collection, actor: User | None) -> Job:
    kind = ReportKind()
    basis = digest_inputs(kind.form, kind.describe_inputs(collection, []), {})
    return request_result(
        kind=kind, subject=collection, chosen={}, settings={"basis": basis[:12]}, actor=actor
    )


def read_sections(result: Result) -> list[Section]:
    return [Section(one["name"], one["sentences"]) for one in result.record["sections"]]


def _list_sentences(record: Record) -> list[Row]:
    return [
        {"section": one["name"], "title": Section(one["name"]).title, "text": text}
        for one in record["sections"]
        for text in one["sentences"]
    ]


@register_kind
class ReportKind(CollectionKind):
    name = ResultType.REPORT.value
    title = gettext_lazy("Report")
    job = WRITE_REPORT
    job_label = gettext_lazy("Writing the report")
    form = 5
    tables = {
        "sentences": Table(
            gettext_lazy("Report"),
            {
                "section": Text(gettext_lazy("Name")),
                "title": Text(gettext_lazy("Section")),
                "text": Text(gettext_lazy("Text")),
            },
            rows=_list_sentences,
        )
    }

    def describe_inputs(self, subject: Collection, inputs: Sequence[Any]) -> list[Any]:
        return Basis(subject).parts()

    def compute(self, given: Given[Collection]) -> Computed:
        sections = Conclusions(given.subject).sections()
        record = {"sections": [{"name": one.name, "sentences": one.sentences} for one in sections]}
        return Computed(record=record)

    def answer(self, result: Result) -> str:
        return next((text for one in read_sections(result) for text in one.sentences), "")

    def details(self, result: Result) -> list[str]:
        first = next(iter(read_sections(result)), None)
        return first.sentences[1:] if first else []
