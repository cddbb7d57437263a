"""What a collection's results hold, as their pages have them: the answer, tables and notes."""

from __future__ import annotations

from typing import Any

from django.forms.models import model_to_dict

from console.collections.evaluation_view import EvaluationView
from console.collections.pool_view import PoolView
from console.collections.sample_view import sentence_of, strata_of
from results.models import Result
from results.shown import ShownResult
from retrieval.evaluation_rows import StoredEvaluation
from retrieval.models import PoolFinding, ResultType

Kind = ResultType
Record = dict[str, Any]


def content_of(version: Result) -> Record:
    """`answer`, `details`, `tables` and `notes` of a result."""
    if version.kind == Kind.EVALUATION:
        return _evaluation(version)
    if version.kind == Kind.POOL:
        return _pool(version)
    if version.kind == Kind.TARGETS:
        return _sample(version)
    return ShownResult(version).summarize()


def _content(answer: str, details: list[str], tables: Record, notes: list[str]) -> Record:
    return {"answer": answer, "details": details, "tables": tables, "notes": notes}


def _evaluation(version: Result) -> Record:
    """The rows of `evaluate_runs --json`, without each topic's values."""
    rows = StoredEvaluation(version)
    answer = EvaluationView(rows, {}).answer
    record = rows.record(per_topic=False)
    tables = {name: record[name] for name in ("results", "comparisons", "groups", "runs")}
    if weighted := record.get("weighted"):
        tables |= {f"weighted_{name}": weighted[name] for name in ("means", "differences")}
    return _content(answer.first_sentence, answer.details, tables, record["notes"])


def _pool(version: Result) -> Record:
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


def _sample(version: Result) -> Record:
    """From which groups targets were drawn; the targets themselves are rows of their own."""
    notes = [note["text"] for note in version.notes]
    return _content(sentence_of(version), [], {"strata": strata_of(version)}, notes)


def _row(row: Any) -> Record:
    return {
        name: value for name, value in model_to_dict(row).items() if name not in ("id", "version")
    }
