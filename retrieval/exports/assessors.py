"""Each assessor's own grades, and what each line of qrels was made of.

Machine labels never come here: judges' scores are no judgments.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.exceptions import StudyUnfit
from annotation.models import Adjudication, Judgment, Submission
from presentation.row_files import Kind, RowFile
from retrieval.exports.qrels import BLANK, UNJUDGED, Pair, Source, pairs_of
from retrieval.trec_layouts import assessor_name

PAIRS_AT_ONCE = 2000


class MarketplaceIds(NamedTuple):
    """Under which names a marketplace knows a submission; empty where none does."""

    hit: str = ""
    assignment: str = ""


# Finds the marketplaces' ids of submissions, by the submissions' keys.
FindIds = Callable[[Collection[int]], Mapping[int, tuple[str, str]]]
PROVENANCE_KINDS: dict[str, Kind] = {
    "line": "integer",
    **dict.fromkeys(("topic", "docno"), "text"),
    "grade": "integer",
    "source": "text",
    "round": "integer",
    "assessor": "text",
    "value": "number",
    "assessor_grade": "integer",
    "status": "text",
    "protocol": "integer",
    "submission": "integer",
    "hit_id": "text",
    "assignment_id": "text",
    "simulated": "boolean",
}


def no_ids(submissions: Collection[int]) -> Mapping[int, tuple[str, str]]:
    return {}


def assessor_lines(source: Source) -> Iterator[str]:
    """`topic assessor docno grade`, as trec_eval reads it with `-R qrels_jg`: every judgment of
    every round; column 2 is the assessor's pseudonym, with `.2` in round 2, and so on. What cannot
    be written is refused before the first line."""
    _require_names(source)
    return _assessor_lines(source)


def _assessor_lines(source: Source) -> Iterator[str]:
    for pairs in _batches(source):
        judged = _judgments(source, [pair.candidate for pair in pairs], every_round=True)
        lines = []
        for pair in pairs:
            for row in judged[pair.candidate]:
                if (grade := source.scale.grade(row["value"])) is not None:
                    lines.append((pair.topic, _group(row), pair.docno, grade))
                elif source.with_unjudged:
                    lines.append((pair.topic, _group(row), pair.docno, UNJUDGED))
        yield "".join(f"{topic} {group} {docno} {grade}\n" for topic, group, docno, grade in lines)


def provenance_rows(source: Source, *, find_ids: FindIds = no_ids) -> RowFile:
    """A row for each judgment or decision that a line of the qrels was made of; lines of what was
    pooled and not judged have one without either, or the answers that it cannot be judged."""
    return RowFile(PROVENANCE_KINDS, _provenance(source, find_ids))


def _provenance(source: Source, find_ids: FindIds) -> Iterator[tuple[Any, ...]]:
    number = 0
    for pairs in _batches(source):
        keys = [pair.candidate for pair in pairs]
        judged, decided = _judgments(source, keys), _decisions(source, keys)
        ids = ids_of([row["submission"] for rows in judged.values() for row in rows], find_ids)
        for pair in pairs:
            number += 1
            grade = UNJUDGED if pair.grade is None else pair.grade
            line = (number, pair.topic, pair.docno, grade)
            for value in decided.get(pair.candidate, ()):
                yield (*line, "decision", source.round, None, value, None, *[None] * 6)
            for row in judged[pair.candidate]:
                yield (*line, *_judgment_cells(source, row, ids))
            if not judged[pair.candidate] and pair.candidate not in decided:
                yield (*line, "pooled", *[None] * 10)


def _judgment_cells(
    source: Source, row: Mapping[str, Any], ids: Mapping[int, MarketplaceIds]
) -> tuple[Any, ...]:
    of_marketplace = ids.get(row["submission"], MarketplaceIds())
    return (
        "judgment",
        row["submission__round"],
        row["submission__annotator__pseudonym"],
        row["value"],
        source.scale.grade(row["value"]),
        row["submission__status"],
        row["submission__protocol__number"],
        row["submission"],
        *of_marketplace,
        row["submission__is_simulated"],
    )


def _batches(source: Source) -> Iterator[list[Pair]]:
    batch: list[Pair] = []
    for pair in pairs_of(source):
        batch.append(pair)
        if len(batch) == PAIRS_AT_ONCE:
            yield batch
            batch = []
    yield batch


def _judgments(
    source: Source, candidates: Sequence[int], *, every_round: bool = False
) -> dict[int, list[dict[str, Any]]]:
    rows = Judgment.objects.of(source.study).accepted().filter(candidate__in=candidates)
    rows = rows.filter(question__name=source.scale.question)
    rows = rows if every_round else rows.filter(submission__round=source.round)
    if source.label_set is not None and not source.label_set.with_flagged:
        rows = rows.unflagged()
    columns = (
        *("candidate", "value", "submission", "submission__round", "submission__status"),
        *("submission__annotator__pseudonym", "submission__protocol__number"),
        "submission__is_simulated",
    )
    by_candidate: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.order_by("pk").values(*columns):
        by_candidate[row["candidate"]].append(row)
    for judged in by_candidate.values():
        judged.sort(key=lambda row: (row["submission__round"], _pseudonym(row)))
    return by_candidate


def _decisions(source: Source, candidates: Sequence[int]) -> dict[int, list[float]]:
    if source.label_set is None or not source.label_set.with_adjudications:
        return {}
    # A label set never changes, and decisions made after it are none of its own.
    of_set = Adjudication.objects.filter(
        question=source.label_set.question,
        round=source.round,
        candidate__in=candidates,
        candidate__labels__label_set=source.label_set,
        candidate__labels__is_adjudicated=True,
        decided_at__lte=source.label_set.created_at,
    )
    last = dict(of_set.order_by("pk").values_list("candidate", "value"))
    return {candidate: [value] for candidate, value in last.items()}


def ids_of(submissions: Sequence[int], find_ids: FindIds) -> dict[int, MarketplaceIds]:
    given = find_ids(set(submissions))
    known = {pk: MarketplaceIds(*ids) for pk, ids in given.items()}
    rest = Submission.objects.filter(pk__in=set(submissions) - known.keys())
    for pk, raw in rest.values_list("pk", "raw").iterator():
        if '"HITId"' in raw and isinstance(fields := json.loads(raw), dict):
            ids = (str(fields.get(name) or "") for name in ("HITId", "AssignmentId"))
            known[pk] = MarketplaceIds(*ids)
    return known


def _pseudonym(row: Mapping[str, Any]) -> str:
    return str(row["submission__annotator__pseudonym"])


def _group(row: Mapping[str, Any]) -> str:
    round = row["submission__round"]
    name = _pseudonym(row) if round == 1 else f"{_pseudonym(row)}.{round}"
    return assessor_name(name, row["submission__is_simulated"])


def _require_names(source: Source) -> None:
    for name in source.study.annotators.values_list("pseudonym", flat=True):
        if BLANK.search(name):
            raise StudyUnfit(
                f"The assessor '{name}' has a space in their name, and qrels are separated by "
                "spaces. Import the study with names that have none.",
                code="space_in_name",
            )
