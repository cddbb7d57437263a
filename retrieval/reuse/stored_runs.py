"""How reusable a collection's judgments are, from its stored runs, qrels and pools."""

from collections.abc import Mapping, Sequence
from statistics import median_high
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext as _

from presentation.numbers import group_values
from presentation.progress import Progress
from results.models import Result
from retrieval.exceptions import PoolDepthUnknown, RunsUnfit
from retrieval.models import CollectionFile, PoolReplacement, PoolSlot, PoolStudy
from retrieval.result_kinds.base import settings_of
from retrieval.result_kinds.pools import source_name
from retrieval.reuse.pools import Provenance, Reusability
from retrieval.reuse.reusability import reusability
from retrieval.stored_files import opened_files

Kind = CollectionFile.Kind


def estimate_reuse(
    files: Sequence[CollectionFile], settings: Mapping[str, Any], progress: Progress
) -> Reusability:
    outside = settings.get("outside", [])
    depth: int | None = settings.get("pool_depth")
    provenance = None if depth else find_provenance(files, outside)
    if not depth and provenance is None:
        depth = find_pool_depth(files)
    with opened_files(files) as (runs, qrels):
        [(name, grades)] = qrels.items()
        try:
            return reusability(
                runs,
                grades,
                depth,
                group_runs(files, outside),
                settings_of(settings),
                outside=outside,
                provenance=provenance,
                progress=progress,
            )
        except PoolDepthUnknown:
            raise PoolDepthUnknown(_ask_for_depth(name)) from None


def group_runs(files: Sequence[CollectionFile], outside: Sequence[str]) -> dict[str, list[str]]:
    return group_values(
        (file.family, file.name)
        for file in files
        if file.kind == Kind.RUN and file.family and file.name not in outside
    )


def find_pool_depth(files: Sequence[CollectionFile]) -> int | None:
    """How deep runs were pooled where this site made the pool that the qrels' study judged.

    Of lists that were fused, the rank that the source which went deepest reached in half of its
    topics: what was passed over in a few topics makes no pool deeper.
    """
    if (made := _find_pool(files)) is None:
        return None
    sources = _name_sources(files, made).values()
    slots = PoolSlot.objects.filter(topic__version=made, source__in=sources)
    if depth := made.settings.get("depth"):
        return min(int(depth), slots.aggregate(rank=Max("source_rank"))["rank"] or int(depth))
    ranks = slots.order_by().values_list("source", "topic").annotate(rank=Max("source_rank"))
    deepest = group_values((source, rank) for source, _topic, rank in ranks)
    return max((int(median_high(each)) for each in deepest.values()), default=None)


def find_provenance(files: Sequence[CollectionFile], outside: Sequence[str]) -> Provenance | None:
    """How deep the pool by quotas that the qrels' study judged took each run in each topic.

    Not `slot.also`, which is where a document is listed at all: what a source came by and found
    in another's slot is logged as passed over.
    """
    made = _find_pool(files)
    if made is None or not made.settings.get("quotas"):
        return None
    sources = {
        name: source for name, source in _name_sources(files, made).items() if name not in outside
    }
    quotas = made.settings["quotas"]
    if foreign := [name for name, source in sources.items() if source not in quotas]:
        raise RunsUnfit(
            _(
                "Pool {number}, which these qrels are of, took nothing from {run}. Tick it under "
                "“Runs that were not pooled”, or type the “Depth of the pool”."
            ).format(number=made.number, run=foreign[0])
        )
    pooled = {source: name for name, source in sources.items()}
    depths: dict[str, dict[str, int]] = {name: {} for name in sources}
    elsewhere: set[tuple[str, str]] = set()
    for rows in (
        PoolSlot.objects.filter(topic__version=made),
        PoolReplacement.objects.filter(topic__version=made, reason="pooled"),
    ):
        columns = rows.order_by().values_list("topic__topic", "source", "source_rank", "docno")
        for topic, source, rank, docno in columns:
            if source in pooled:
                of_topic = depths[pooled[source]]
                of_topic[topic] = max(rank, of_topic.get(topic, 0))
            else:
                elsewhere.add((topic, docno))
    return Provenance(depths, elsewhere)


def _find_pool(files: Sequence[CollectionFile]) -> Result | None:
    studies = {file.study_id for file in files if file.kind == Kind.QRELS and file.study_id}
    row = (
        PoolStudy.objects.filter(study__in=studies).select_related("version").order_by("pk").last()
    )
    return None if row is None else row.version


def _name_sources(files: Sequence[CollectionFile], made: Result) -> dict[str, str]:
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


def _ask_for_depth(qrels: str) -> str:
    return _(
        "Not all first documents of the runs are in {qrels}, so the files do not show how deep the "
        "pool was. Under “Depth of the pool”, type how many of each run's first documents were "
        "pooled, such as 10; where every run begins with its own target, which is never pooled, "
        "one more. If only some of the runs were pooled, tick the others under “Runs that were "
        "not pooled”."
    ).format(qrels=qrels)
