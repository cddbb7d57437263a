from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _, gettext_lazy

from accounts.models import User
from presentation.files import reason_of
from presentation.numbers import plain_values
from presentation.progress import Reporter
from results.computing import request_result
from results.kinds import Computed, Given, register_kind
from results.models import Result
from retrieval.exceptions import CollectionUnfit, PoolUnfit
from retrieval.file_readings import note_fits
from retrieval.models import (
    Collection,
    CollectionFile,
    DryPoolSource,
    PooledTopic,
    PoolFinding,
    PoolReplacement,
    PoolSlot,
    ResultFile,
    ResultType,
    SampledTarget,
)
from retrieval.pools.catalogue import Catalogue, targets_of_runs
from retrieval.pools.construction import make_pool, require_candidates
from retrieval.pools.lint import PoolLint, lint_pool
from retrieval.pools.pool_files import table_of
from retrieval.pools.records import (
    DrySource,
    Pool,
    PoolPlan,
    Replacement,
    Slot,
    SourceFacts,
    Target,
)
from retrieval.pools.sampling import TargetSample, difficulty, draw_targets, targets_of_source
from retrieval.pools.sources import EmbeddingSource, RunSource, Source
from retrieval.result_kinds.base import CollectionKind, write_rows
from retrieval.stored_files import (
    files_on_disk,
    opened_catalogue,
    vectors_of,
)
from retrieval.trec_files import read_run
from work.models import Job

MAKE_POOL = "make_pool"
MOST_SLOTS = 1_000_000
FUSION = ("fusion_constant", "fusion_depth")
Kind = CollectionFile.Kind
EMBEDDINGS = Kind.EMBEDDINGS


def plan_of(rules: Mapping[str, Any]) -> PoolPlan:
    try:
        return PoolPlan(
            # in an order of their own: a database may give back another than it was given
            quotas=tuple((name, int(n)) for name, n in sorted(rules.get("quotas", {}).items())),
            **{
                name: int(rules.get(name, 0))
                for name in ("depth", "take", "uniform", "cap", "seed")
            },
            **{name: int(rules[name]) for name in FUSION if name in rules},
        )
    except ValueError as error:
        raise PoolUnfit(
            _("The plan cannot be followed: {error}.").format(error=reason_of(error)),
            code="plan_unfit",
        ) from None


def request_pool(
    *,
    collection: Collection,
    files: Sequence[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
) -> Job:
    plan = plan_of(rules)
    sources = source_files(files, rules)
    if not sources:
        raise PoolUnfit(
            _("Choose at least one run, or vectors, to take candidates from."), code="no_sources"
        )
    named = any(rules.get(name) for name in ("targets", "sample", "queries"))
    if not named and not any(file.kind == Kind.RUN for file in sources):
        raise PoolUnfit(
            _("Name the targets: without a run there are no topics."), code="no_targets"
        )
    _require_few(_n_targets(files, sources, rules), plan, len(sources))
    return request_result(
        kind=PoolKind(), subject=collection, chosen={"files": files}, settings=rules, actor=actor
    )


def _n_targets(
    files: Sequence[CollectionFile], sources: Sequence[CollectionFile], rules: Mapping[str, Any]
) -> int:
    """How many targets there may be, as `targets_of` finds them."""
    if sample := rules.get("sample"):
        return SampledTarget.objects.filter(version=sample).count()
    if named := rules.get("targets"):
        return len(named)
    if any(file.kind == Kind.RUN for file in sources):
        return max(file.n_topics for file in sources)
    of_topics = set(rules.get("queries", {}).values())
    return sum(file.n_documents for file in files if source_name(file) in of_topics)


def _require_few(n_targets: int, plan: PoolPlan, n_sources: int) -> None:
    if n_targets * (plan.per_topic or plan.depth * n_sources) > MOST_SLOTS:
        raise CollectionUnfit(
            _("These would be more than {n} candidates. Sample targets first.").format(
                n=f"{MOST_SLOTS:,}"
            ),
            code="too_many_candidates",
        )


@register_kind
class PoolKind(CollectionKind):
    """Candidates of each topic. Slots are rows: pages and studies page them."""

    name = ResultType.POOL.value
    title = gettext_lazy("Pool")
    job = MAKE_POOL
    job_label = gettext_lazy("Making a pool")
    form = 2

    def compute(self, given: Given[Collection]) -> Computed:
        pool, lint = _pool_and_lint(given.inputs, given.settings, given.progress)
        require_candidates(pool)
        return Computed(
            record={"sources": _list_sources(pool)},
            facts=_count(pool, lint),
            seed=int(given.settings.get("seed", 0)),
            write_rows=lambda result: write_pool_rows(result, pool, lint),
        )


def _pool_and_lint(
    files: Sequence[CollectionFile], rules: Mapping[str, Any], reporter: Reporter
) -> tuple[Pool, PoolLint]:
    with ExitStack() as stack:
        paths = dict(zip(files, stack.enter_context(files_on_disk(files)), strict=True))
        catalogue = next(
            (
                stack.enter_context(opened_catalogue(path))
                for file, path in paths.items()
                if file.kind == Kind.CATALOGUE
            ),
            None,
        )
        sources = opened_sources(paths, rules, stack)
        targets, plan = targets_of(rules, sources, catalogue), plan_of(rules)
        # several runs may have other topics each
        _require_few(len(targets), plan, len(sources))
        pool = make_pool(
            targets,
            sources,
            plan,
            catalogue=catalogue,
            excluded=rules.get("excluded", ()),
            progress=reporter(_("topic")),
        )
        return pool, lint_pool(table_of(pool), catalogue=catalogue)


def source_files(files: Iterable[CollectionFile], rules: Mapping[str, Any]) -> list[CollectionFile]:
    """The files that candidates come from: not those of which only topics' vectors are taken."""
    of_topics = set(rules.get("queries", {}).values())
    return [
        file
        for file in files
        if file.kind == Kind.RUN
        or (file.kind == Kind.EMBEDDINGS and source_name(file) not in of_topics)
    ]


def opened_sources(
    paths: Mapping[CollectionFile, Path], rules: Mapping[str, Any], stack: ExitStack
) -> list[Source]:
    by_name = {source_name(file): path for file, path in paths.items() if file.kind == EMBEDDINGS}
    sources: list[Source] = []
    for file in source_files(paths, rules):
        source = opened_source(file, paths[file], stack)
        if isinstance(source, EmbeddingSource):
            similarity = rules.get("similarity", {}).get(source.name, "cosine")
            source = replace(source, similarity=similarity)
            if of_topics := rules.get("queries", {}).get(source.name):
                queries = stack.enter_context(vectors_of(by_name[of_topics]))
                source = replace(source, queries=queries)
                require_same_length(source)
        sources.append(source)
    return sources


def require_same_length(source: EmbeddingSource) -> None:
    assert source.queries is not None
    n_topics, n_documents = (one.array.shape[1] for one in (source.queries, source.vectors))
    if n_topics != n_documents:
        raise PoolUnfit(
            _("Vectors of topics have {topics} numbers, where those of {name} have {n}.").format(
                topics=n_topics, name=source.name, n=n_documents
            )
        )


def opened_source(
    file: CollectionFile, path: Path, stack: ExitStack
) -> RunSource | EmbeddingSource:
    name = source_name(file)
    if file.kind == Kind.RUN:
        return RunSource(name, read_run(path), f"run|file:{file.file_name}|sha256:{file.sha256}")
    vectors = stack.enter_context(vectors_of(path))
    if file.signature:
        vectors = replace(vectors, signature=file.signature)
    return EmbeddingSource(name, vectors)


def source_name(file: CollectionFile | ResultFile) -> str:
    """What a pool calls a file: names of sources have no white space in them."""
    return "_".join(file.name.split()) or file.kind


def targets_of(
    rules: Mapping[str, Any], sources: Sequence[Source], catalogue: Catalogue | None
) -> list[Target]:
    known = set(catalogue.documents if catalogue else ())
    known.update(*(source.documents for source in sources))
    if sample := rules.get("sample"):
        rows = SampledTarget.objects.filter(version=sample).values_list("topic", "docno")
        # a run lists no document for itself; the catalogue may know it all the same
        return [Target(topic, docno or (topic if topic in known else "")) for topic, docno in rows]
    runs = [source.run for source in sources if isinstance(source, RunSource)]
    names = rules.get("targets")
    if not names and not runs:
        of_topics = [source.queries for source in sources if isinstance(source, EmbeddingSource)]
        names = dict.fromkeys(name for one in of_topics if one is not None for name in one.names)
    if names:
        return [Target(name, name if name in known else "") for name in names]
    return targets_of_runs(runs, known)


def _count(pool: Pool, lint: PoolLint) -> dict[str, Any]:
    report = pool.report
    candidates, hubs = report["candidates"], report["hubness"]
    names = ("n_slots", "n_documents", "n_catalogue", "n_replacements")
    of_hubs = ("n_hubs", "hub_share", "hub_slots", "anti_hubs", "skewness")
    return {
        "n_topics": len(pool.targets),
        **{name: report[name] for name in names},
        "n_planned": candidates["planned"],
        "n_least": candidates["least"],
        "n_most": candidates["most"],
        "n_short": report["n_topics_short"],
        "n_unmet": report["n_topics_with_quotas_unmet"],
        **plain_values({name: hubs[name] for name in of_hubs}),
        "n_faults": len(lint.faults),
    }


def write_pool_rows(version: Result, pool: Pool, lint: PoolLint) -> None:
    write_rows(
        PooledTopic,
        ({"version": version, "topic": one.topic, "docno": one.docno} for one in pool.targets),
    )
    topics = dict(version.pooled_topics.values_list("topic", "pk"))

    def row_of(one: Any, names: Sequence[str]) -> dict[str, Any]:
        return {"topic_id": topics[one.topic], **{name: getattr(one, name) for name in names}}

    write_rows(
        PoolSlot,
        (
            row_of(slot, SLOT) | {"also": " ".join(f"{name}:{rank}" for name, rank in slot.also)}
            for slot in pool.slots
        ),
    )
    write_rows(PoolReplacement, (row_of(one, REPLACEMENT) for one in pool.replacements))
    write_rows(
        DryPoolSource,
        (row_of(one, DRY) | {"filled_by": " ".join(one.filled_by)} for one in pool.dry),
    )
    write_rows(
        PoolFinding,
        (
            {"version": version, **{name: getattr(one, name) for name in FINDING}}
            for one in lint.faults
        ),
    )


FINDING = ("name", "problem", "topic", "docno")
SLOT = ("slot", "position", "docno", "source", "source_rank", "quota", "inclusion")
REPLACEMENT = ("slot", "source", "source_rank", "docno", "reason", "other")
DRY = ("source", "quota", "n_listed", "n_missing")


def _list_sources(pool: Pool) -> list[dict[str, Any]]:
    facts = {each.name: each for each in pool.sources}
    drawn = SourceFacts("", "uniform", "")
    names = ("n_slots", "n_documents", "n_alone", "n_for_others", "deepest_rank", "n_dry_topics")
    return [
        {
            "name": row["source"],
            "kind": facts.get(row["source"], drawn).kind,
            "signature": facts.get(row["source"], drawn).signature,
            "n_passed_over": sum(row["replacements"].values()),
            **{name: row[name] for name in names},
        }
        for row in pool.report["sources"]
    ]


def stored_pool(version: Result) -> Pool:
    topics = list(version.pooled_topics.prefetch_related("slots", "replacements", "dry"))
    return Pool(
        targets=tuple(Target(row.topic, row.docno) for row in topics),
        slots=tuple(_slot(row.topic, slot) for row in topics for slot in row.slots.all()),
        replacements=tuple(
            Replacement(row.topic, **{name: getattr(one, name) for name in REPLACEMENT})
            for row in topics
            for one in row.replacements.all()
        ),
        dry=tuple(
            DrySource(
                row.topic,
                **{name: getattr(one, name) for name in DRY},
                filled_by=tuple(one.filled_by.split()),
            )
            for row in topics
            for one in row.dry.all()
        ),
        plan=plan_of(version.settings),
        sources=tuple(
            SourceFacts(one["name"], one["kind"], one["signature"])
            for one in version.record["sources"]
            if one["signature"]
        ),
    )


def _slot(topic: str, row: PoolSlot) -> Slot:
    values = {name: getattr(row, name) for name in SLOT}
    pairs = (one.rpartition(":") for one in row.also.split())
    return Slot(topic, **values, also=tuple((name, int(rank)) for name, _colon, rank in pairs))


SAMPLE_TARGETS = "sample_targets"
SOURCES = (CollectionFile.Kind.RUN, CollectionFile.Kind.EMBEDDINGS)


def request_sample(
    *,
    collection: Collection,
    files: Sequence[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
) -> Job:
    """Have targets drawn, by a predictor of difficulty over one source or by a column's values.

    `rules`: n, strata, allocation, seed; predictor, or column with `values`: topic, document and
    number of each target.
    """
    if bool(rules.get("predictor")) == bool(rules.get("values")):
        raise PoolUnfit(_("Say by what to stratify: a predictor, or a column of a file."))
    if rules.get("predictor") and [file.kind in SOURCES for file in files] != [True]:
        raise PoolUnfit(_("A predictor looks at one run, or at one source of embeddings."))
    return request_result(
        kind=TargetsKind(), subject=collection, chosen={"files": files}, settings=rules, actor=actor
    )


@register_kind
class TargetsKind(CollectionKind):
    """Targets drawn from strata. They are rows: pools and weights join them by topic."""

    name = ResultType.TARGETS.value
    title = gettext_lazy("Targets")
    job = SAMPLE_TARGETS
    job_label = gettext_lazy("Drawing targets")

    def compute(self, given: Given[Collection]) -> Computed:
        sample = _drawn(given.inputs, given.settings, given.progress)
        kept = {name: value for name, value in given.settings.items() if name != "values"}
        return Computed(
            settings=kept | {"column": sample.column, "signature": sample.signature},
            facts={"n_topics": len(sample.targets)},
            notes=[f"{note}." for note in sample.notes()],
            seed=sample.seed,
            write_rows=lambda result: write_rows(SampledTarget, _rows(result, sample)),
        )

    def finish(self, subject: Collection, inputs: Sequence[CollectionFile]) -> None:
        note_fits(subject)


def _drawn(
    files: Sequence[CollectionFile], rules: Mapping[str, Any], reporter: Reporter
) -> TargetSample:
    if values := rules.get("values"):
        targets = [Target(topic, docno) for topic, docno, _value in values]
        numbers = np.array([value for *_names, value in values], dtype=float)
        column, signature = rules["column"], rules.get("signature", "")
    else:
        with ExitStack() as stack:
            [path] = stack.enter_context(files_on_disk(files))
            source = opened_source(files[0], path, stack)
            targets = targets_of_source(source)
            numbers, signature = difficulty(
                targets, source, rules["predictor"], progress=reporter(_("target"))
            )
            column = f"{rules['predictor']} of {source.name}"
    return draw_targets(
        targets,
        numbers,
        rules["n"],
        n_strata=rules["strata"],
        allocation=rules["allocation"],
        seed=rules["seed"],
        column=column,
        signature=signature,
    )


def _rows(version: Result, sample: TargetSample) -> Any:
    for drawn in sample.targets:
        yield {
            "version": version,
            "topic": drawn.target.topic,
            "docno": drawn.target.docno,
            "value": drawn.value,
            "stratum": str(drawn.stratum),
            "inclusion": drawn.probability,
        }
