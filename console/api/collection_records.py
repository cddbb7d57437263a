"""What a collection's results hold, as their pages have them: the answer, tables and notes."""

from __future__ import annotations

from typing import Any

from django.forms.models import model_to_dict

from console.collections.audit_view import AuditView
from console.collections.comparison_view import ComparisonView
from console.collections.evaluation_view import EvaluationView
from console.collections.machine_view import MachineView
from console.collections.pool_view import PoolView
from console.collections.reports import stored_sections
from console.collections.result_view import ResultView
from console.collections.reuse_view import ReuseView
from console.collections.sample_view import sentence_of, strata_of
from retrieval.evaluation_rows import StoredEvaluation
from retrieval.models import CollectionVersion, PoolFinding

Kind = CollectionVersion.Kind
Record = dict[str, Any]
VIEWS: dict[str, type[ResultView]] = {
    Kind.COMPARISON: ComparisonView,
    Kind.REUSE: ReuseView,
    Kind.MACHINE: MachineView,
    Kind.AUDIT: AuditView,
}


def content_of(version: CollectionVersion) -> Record:
    """`answer`, `details`, `tables` and `notes` of a result."""
    if version.kind == Kind.EVALUATION:
        return _evaluation(version)
    if version.kind == Kind.POOL:
        return _pool(version)
    if version.kind == Kind.REPORT:
        return _report(version)
    if version.kind == Kind.TARGETS:
        return _sample(version)
    view = VIEWS[version.kind](version)
    tables = {name: table.records() for name, table in view.tables.items()}
    return _content(view.first_sentence, view.details, tables, view.notes)


def _content(answer: str, details: list[str], tables: Record, notes: list[str]) -> Record:
    return {"answer": answer, "details": details, "tables": tables, "notes": notes}


def _evaluation(version: CollectionVersion) -> Record:
    """The rows of `evaluate_runs --json`, without each topic's values."""
    rows = StoredEvaluation(version)
    answer = EvaluationView(rows, {}).answer
    record = rows.record(per_topic=False)
    tables = {name: record[name] for name in ("results", "comparisons", "groups", "runs")}
    if weighted := record.get("weighted"):
        tables |= {f"weighted_{name}": weighted[name] for name in ("means", "differences")}
    return _content(answer.first_sentence, answer.details, tables, record["notes"])


def _pool(version: CollectionVersion) -> Record:
    """How its slots were filled, source by source, and what is wrong with it."""
    view = PoolView(version)
    summary = [_row(view.summary)]
    findings = PoolFinding.objects.filter(version=version)
    tables = {
        "summary": summary,
        "sources": [_row(one) for one in view.sources],
        "passed_over": [{"reason": reason, "n": n} for reason, n in view.replacements],
        "findings": [_row(one) for one in findings],
    }
    return _content(view.answer, [view.soundness, view.hubs], tables, [])


def _sample(version: CollectionVersion) -> Record:
    """From which groups targets were drawn; the targets themselves are rows of their own."""
    notes = [note.text for note in version.notes.all()]
    return _content(sentence_of(version), [], {"strata": strata_of(version)}, notes)


def _row(row: Any) -> Record:
    return {
        name: value for name, value in model_to_dict(row).items() if name not in ("id", "version")
    }


def _report(version: CollectionVersion) -> Record:
    """Its sentences, section by section; the first is the answer."""
    sections = stored_sections(version)
    sentences = [
        {"section": one.name, "title": one.title, "text": text}
        for one in sections
        for text in one.sentences
    ]
    first = sections[0].sentences if sections else [""]
    return _content(first[0], first[1:], {"sentences": sentences}, [])
