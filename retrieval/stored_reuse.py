"""How far a collection may be used for systems that were not pooled: requested, stored as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median_high
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from presentation.records import plain_values
from retrieval.exceptions import PoolDepthUnknown, RunsUnfit
from retrieval.models import (
    CollectionFile,
    CollectionVersion,
    JudgedPool,
    LeftOutEffect,
    LeftOutUnit,
    PooledRun,
    PoolRank,
    PoolReplacement,
    PoolSlot,
    PoolSource,
    PoolStudy,
    ReuseExpectation,
)
from retrieval.reuse.records import Provenance, Reusability
from retrieval.reuse.reusability import reusability
from retrieval.stored_evaluations import settings_of
from retrieval.stored_files import opened_files
from retrieval.stored_pools import source_name
from retrieval.stored_versions import (
    draft_of,
    request_version,
    write_files,
    write_notes,
    write_rows,
)

if TYPE_CHECKING:
    from accounts.models import User
    from retrieval.models import Collection
    from work.execution import RunningJob
    from work.models import Job

ESTIMATE_REUSE = "estimate_collection_reuse"
FORM = 4
"""Of the rows; those of another form are not taken for the same."""
FEWEST = 2
Kind = CollectionFile.Kind


def request_reuse(
    *,
    collection: Collection,
    qrels: CollectionFile,
    runs: Sequence[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
) -> Job:
    """Have each run and each family left out in the background; RunsUnfit where it is not possible.

    `rules` are an evaluation's, with `pool_depth` (or None) and `outside`, names of runs.
    """
    settings_of(rules)
    if len(runs) - len(rules.get("outside", ())) < FEWEST:
        raise RunsUnfit(
            _("Choose two pooled runs or more: each is left out in turn."), code="too_few_runs"
        )
    files = [qrels, *runs]
    return request_version(
        collection=collection, job_kind=ESTIMATE_REUSE, files=files, rules=rules, actor=actor
    )


def families_of(files: Sequence[CollectionFile], outside: Sequence[str]) -> dict[str, list[str]]:
    """The pooled runs of each family."""
    families: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.kind == Kind.RUN and file.family and file.name not in outside:
            families[file.family].append(file.name)
    return dict(families)


def estimate_reuse(running: RunningJob) -> str:
    """Leave each run and family of a job out, and store what comes of it."""
    draft = draft_of(running, CollectionVersion.Kind.REUSE, FORM)
    files, rules = draft.files, draft.rules

    def compute() -> CollectionVersion:
        estimated = _estimated(running, files, rules)
        with transaction.atomic():
            version = draft.create(n_topics=estimated.n_topics)
            write_files(version, files)
            _write(version, estimated)
        return version

    return draft.once(compute)


def _estimated(
    running: RunningJob, files: Sequence[CollectionFile], rules: Mapping[str, Any]
) -> Reusability:
    outside = rules.get("outside", [])
    depth: int | None = rules.get("pool_depth")
    provenance = None if depth else provenance_of(files, outside)
    if not depth and provenance is None:
        depth = depth_of_pool(files)
    with opened_files(files) as (runs, qrels):
        [(name, grades)] = qrels.items()
        try:
            return reusability(
                runs,
                grades,
                depth,
                families_of(files, outside),
                settings_of(rules),
                outside=outside,
                provenance=provenance,
                progress=running.progress(_("system")),
            )
        except PoolDepthUnknown:
            raise PoolDepthUnknown(_depth_to_type(name)) from None


def depth_of_pool(files: Sequence[CollectionFile]) -> int | None:
    """How deep runs were pooled where this site made the pool that the qrels' study judged.

    Of lists that were fused, the rank that the source which went deepest reached in half of its
    topics: what was passed over in a few topics makes no pool deeper.
    """
    if (made := _pool_of(files)) is None:
        return None
    sources = _sources_of(files, made).values()
    slots = PoolSlot.objects.filter(topic__version=made, source__in=sources)
    if depth := made.rules.get("depth"):
        deepest_rank = slots.aggregate(rank=Max("source_rank"))["rank"]
        return min(int(depth), deepest_rank or int(depth))
    deepest: dict[str, list[int]] = defaultdict(list)
    ranks = slots.order_by().values_list("source", "topic").annotate(rank=Max("source_rank"))
    for source, _topic, rank in ranks:
        deepest[source].append(rank)
    return max((int(median_high(each)) for each in deepest.values()), default=None)


def provenance_of(files: Sequence[CollectionFile], outside: Sequence[str]) -> Provenance | None:
    """How deep the pool by quotas that the qrels' study judged took each run in each topic.

    Not `slot.also`, which is where a document is listed at all: what a source came by and found
    in another's slot is logged as passed over.
    """
    made = _pool_of(files)
    if made is None or not made.rules.get("quotas"):
        return None
    sources = {
        name: source for name, source in _sources_of(files, made).items() if name not in outside
    }
    if foreign := [name for name, source in sources.items() if source not in made.rules["quotas"]]:
        raise RunsUnfit(
            _(
                "Pool {number}, which these qrels are of, took nothing from {run}. Tick it under "
                "“Runs that were not pooled”, or type the “Depth of the pool”."
            ).format(number=made.number, run=foreign[0])
        )
    pooled = {source: name for name, source in sources.items()}
    depths: dict[str, dict[str, int]] = {name: {} for name in sources}
    elsewhere: set[tuple[str, str]] = set()
    slots = PoolSlot.objects.filter(topic__version=made)
    passed = PoolReplacement.objects.filter(topic__version=made, reason="pooled")
    for rows in (slots, passed):
        columns = rows.order_by().values_list("topic__topic", "source", "source_rank", "docno")
        for topic, source, rank, docno in columns:
            if source in pooled:
                of_topic = depths[pooled[source]]
                of_topic[topic] = max(rank, of_topic.get(topic, 0))
            else:
                elsewhere.add((topic, docno))
    return Provenance(depths, elsewhere)


def _pool_of(files: Sequence[CollectionFile]) -> CollectionVersion | None:
    """The pool that the qrels' study was made of here."""
    studies = {file.study_id for file in files if file.kind == Kind.QRELS and file.study_id}
    made = PoolStudy.objects.filter(study__in=studies).select_related("version")
    row = made.order_by("pk").last()
    return None if row is None else row.version


def _sources_of(files: Sequence[CollectionFile], made: CollectionVersion) -> dict[str, str]:
    """What a pool calls each run: as it was called then, whatever it has been renamed to.

    A run of other content that has the name now is none of the pool's where that one is here too.
    """
    then = {row.sha256: source_name(row) for row in made.files.filter(kind=Kind.RUN)}
    runs = [file for file in files if file.kind == Kind.RUN]
    sources = {run.name: then[run.sha256] for run in runs if run.sha256 in then}
    taken = set(sources.values())
    for run in runs:
        if run.name not in sources:
            name = source_name(run)
            sources[run.name] = "" if name in taken else name
    return sources


def _depth_to_type(qrels: str) -> str:
    """What the page's form needs where files do not show how deep their pool was."""
    return _(
        "Not all first documents of the runs are in {qrels}, so the files do not show how deep the "
        "pool was. Under “Depth of the pool”, type how many of each run's first documents were "
        "pooled, such as 10; where every run begins with its own target, which is never pooled, "
        "one more. If only some of the runs were pooled, tick the others under “Runs that were "
        "not pooled”."
    ).format(qrels=qrels)


def _write(version: CollectionVersion, estimated: Reusability) -> None:
    JudgedPool.objects.create(
        version=version,
        pool_depth=estimated.pool_depth,
        is_depth_inferred=estimated.is_depth_inferred,
        has_provenance=estimated.has_provenance,
        share_in_qrels=estimated.share_in_qrels,
        n_judged=estimated.n_judged,
        n_relevant=estimated.n_relevant,
        last_share=estimated.last_share,
        is_rising=estimated.is_rising,
    )
    systems = (plain_values(asdict(one)) for one in estimated.systems)
    write_rows(PooledRun, ({"version": version, **one} for one in systems))
    write_rows(PoolRank, ({"version": version, **asdict(one)} for one in estimated.depths))
    write_rows(PoolSource, (_with_reason(version, one.record()) for one in estimated.sources))
    write_rows(
        ReuseExpectation, (_with_reason(version, one.record()) for one in estimated.expectations)
    )
    for unit in estimated.left_out:
        record = unit.record()
        effects = record.pop("effects")
        del record["runs"]
        row = LeftOutUnit.objects.create(version=version, **record)
        write_rows(LeftOutEffect, ({"unit": row, **effect} for effect in effects))
    write_notes(version, estimated.notes)


def _with_reason(version: CollectionVersion, record: dict[str, Any]) -> dict[str, Any]:
    return {"version": version, **record, "reason": record["reason"] or ""}
