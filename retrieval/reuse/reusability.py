from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from error_codes import CodedText
from presentation.numbers import count_of
from presentation.progress import Progress, silently
from retrieval.evaluated_runs import Settings
from retrieval.evaluation import (
    has_relevant,
    lists_of_run,
    positions,
    require_scale,
    run_names,
    share_judged,
)
from retrieval.exceptions import PoolDepthUnknown, RunsUnfit
from retrieval.reuse.pools import (
    LEAST_IN_QRELS,
    Effect,
    Families,
    LeftOut,
    Pooled,
    Provenance,
    Reusability,
    Row,
    Unit,
    depths_of,
    expectation_record,
    families,
    sources_of,
    systems_of,
)
from retrieval.trec_files import RelevanceGrades, Run
from stats.arguments import Flags, Floats, Integers
from stats.ranking import JudgedLists, Measure, measure
from stats.ranking.notation import KINDS
from stats.ranking.pool_bias import (
    FEW_GROUPS,
    LEAST_GROUPS,
    NOT_LISTED,
    depth_in_pool,
    expected_underestimate,
    judgments_only_of,
    lists_without,
    pool_ranks,
)
from stats.ranking.resampled_topics import weighted_scores
from stats.ranking.topic_means import compare_over_topics

# Measures of what was judged, not of systems.
OF_THE_POOL = ("Judged", "Pooled", "RBPresidual")


def reusability(
    runs: Sequence[Run],
    grades: RelevanceGrades,
    pool_depth: int | None,
    groups: Mapping[str, Sequence[str]],
    settings: Settings,
    *,
    outside: Sequence[str] = (),
    provenance: Provenance | None = None,
    progress: Progress = silently,
) -> Reusability:
    """What leaving each system and each group out of the pool does to all runs' values.

    Without a `pool_depth` it is the depth to which all pooled runs are in the qrels, unless
    `provenance` has the depth of each run in each topic. `outside`
    names runs that were not pooled; they are scored, and bring no judgments. Runs are named by
    their tags or their files.
    """
    require_scale(grades, settings.measures)
    names = run_names(runs)
    of_file = {run.path.name: name for run, name in zip(runs, names, strict=True)}
    named = {group: [of_file.get(run, run) for run in of] for group, of in groups.items()}
    family = families(names, named, [of_file.get(run, run) for run in outside])
    pool = _pool(runs, grades, family, pool_depth, settings, provenance)
    scores = _Scores(pool, _with_companions(settings.measures), settings)
    units = _units(family)
    left_out = tuple(
        scores.left_out(name, unit, members) for unit, name, members in progress(units, len(units))
    )
    record = Reusability(
        qrels=grades.path.name,
        pool_depth=pool.depth,
        is_depth_inferred=pool_depth is None and provenance is None,
        has_provenance=provenance is not None,
        share_in_qrels=pool.share_in_qrels,
        groups=family.groups,
        measures=scores.measures,
        systems=tuple(systems_of(pool)),
        depths=tuple(depths_of(pool)),
        sources=tuple(sources_of(pool, settings.confidence)),
        left_out=left_out,
        expectations=tuple(_expectations(left_out, scores.measures, family, settings)),
        n_topics=int(pool.counted.sum()),
        n_judged=int((grades.grade >= 0).sum()),
        n_relevant=int((grades.grade > 0).sum()),
        settings=settings,
    )
    return replace(record, notes=tuple(_notes(record, pool)))


def _pool(
    runs: Sequence[Run],
    grades: RelevanceGrades,
    family: Families,
    pool_depth: int | None,
    settings: Settings,
    provenance: Provenance | None,
) -> Pooled:
    lists = []
    for run in runs:
        position = positions(run.topics, grades.topics)
        lists.append(lists_of_run(grades, run, position, settings.single_precision)[settings.ties])
    pooled = [one for one, is_in in zip(lists, family.is_pooled, strict=True) if is_in]
    ranks = pool_ranks(lists, len(grades.grade))
    elsewhere = np.zeros(len(grades.grade), dtype=bool)
    if provenance is not None:
        ranks, depth = _ranks_in_pool(ranks, grades, family, provenance)
        elsewhere = _brought_elsewhere(grades, provenance)
    else:
        depth = depth_in_pool(pooled) if pool_depth is None else pool_depth
    if pool_depth is not None:
        _require_listed(pool_depth, pooled)
    if depth < 1:
        raise PoolDepthUnknown(
            f"Not all first documents of the runs are in {grades.path.name}. Say to which depth "
            "they were pooled (--pool-depth), or which were not (--outside)."
        )
    counted = np.ones(len(grades.topics), dtype=bool)
    if settings.leave_out_without_relevant:
        counted = has_relevant(grades)
    for name, one in zip(family.runs, lists, strict=True):
        if not (counted & (one.n_listed > 0)).any():
            raise RunsUnfit(f"{name} has no topic of {grades.path.name} that counts.")
    return Pooled(family, grades, lists, ranks, depth, counted, elsewhere)


def _require_listed(depth: int, pooled: Sequence[JudgedLists]) -> None:
    """Refuse a pool deeper than any list: what is taken out would be what is in no other list."""
    longest = max((int(one.rank.max(initial=0)) for one in pooled), default=0)
    if depth > longest:
        raise RunsUnfit(
            f"The pool cannot be {depth:,} documents deep: no pooled run lists more than "
            f"{longest:,} for a topic. Name how many of each run's first documents were pooled."
        )


def _ranks_in_pool(
    ranks: Integers, grades: RelevanceGrades, family: Families, provenance: Provenance
) -> tuple[Integers, int]:
    taken = ranks.copy()
    deepest = 0
    for row, name, is_in in zip(taken, family.runs, family.is_pooled, strict=True):
        if is_in:
            of_topic = provenance.depths[name]
            depths = np.array([of_topic.get(topic, 0) for topic in grades.topics], dtype=np.intp)
            row[row > depths[grades.topic]] = NOT_LISTED
            deepest = max(deepest, int(depths.max(initial=0)))
    return taken, deepest


def _brought_elsewhere(grades: RelevanceGrades, provenance: Provenance) -> Flags:
    pairs = zip(grades.topic.tolist(), grades.document.tolist(), strict=True)
    known = provenance.elsewhere
    return np.array(
        [(grades.topics[topic], grades.documents[document]) in known for topic, document in pairs],
        dtype=bool,
    )


def _with_companions(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """The measures of systems, each with its condensed form beside it, and bpref."""
    chosen: list[Measure] = []
    for one in measures:
        if one.kind in OF_THE_POOL:
            continue
        chosen.append(one)
        if "judged_only" in KINDS[one.kind].settings:
            settings = dict(one.settings) | {"judged_only": True}
            chosen.append(replace(one, settings=tuple(sorted(settings.items()))))
    if not chosen:
        raise RunsUnfit("Leaving one out takes a measure of systems, such as nDCG@10.")
    return tuple(dict.fromkeys([*chosen, measure("Bpref")]))


def _units(family: Families) -> list[tuple[Unit, str, Flags]]:
    pooled = [run for run, is_in in zip(family.runs, family.is_pooled, strict=True) if is_in]
    units: list[tuple[Unit, str, Flags]] = [
        ("system", run, family.members([run])) for run in pooled
    ]
    if family.has_groups:
        units += [("group", name, family.members(runs)) for name, runs in family.groups.items()]
    return units


_Values = list[list[Floats]]
_Table = tuple[_Values, Floats]


class _Scores:
    def __init__(self, pool: Pooled, measures: tuple[Measure, ...], settings: Settings) -> None:
        self.pool, self.measures, self.settings = pool, measures, settings
        self.values, self.judged = self._scored(pool.lists)

    def _scored(self, lists: Iterator[JudgedLists] | Sequence[JudgedLists]) -> _Table:
        """By run and measure: the topics' values, and the share judged where it looks.

        In topics that a run lacks its values are NaN, or 0 if that counts.
        """
        values, shares = [], []
        for one in lists:
            listed = one.n_listed > 0
            absent, counts = self.settings.of_missing, self.pool.counted & listed
            values.append(
                [
                    np.where(listed, each.values(one), absent)[self.pool.counted]
                    for each in self.measures
                ]
            )
            shares.append([float(share_judged(one, each)[counts].mean()) for each in self.measures])
        return values, np.array(shares)

    def left_out(self, name: str, unit: Unit, members: Flags) -> LeftOut:
        pool = self.pool
        pooled = pool.family.is_pooled
        taken = judgments_only_of(pool.ranks[pooled], members[pooled], pool.depth) & ~pool.elsewhere
        lists = lists_without(pool.lists, pool.grades.topic, pool.grades.grade, taken)
        values, judged = self._scored(lists) if taken.any() else (self.values, self.judged)
        relevant = pool.grades.grade > 0
        before = np.bincount(pool.grades.topic[relevant], minlength=len(pool.counted)) > 0
        after = np.bincount(pool.grades.topic[relevant & ~taken], minlength=len(pool.counted)) > 0
        return LeftOut(
            name=name,
            unit=unit,
            runs=tuple(np.array(pool.family.runs)[members].tolist()),
            n_judged_lost=int((taken & (pool.grades.grade >= 0)).sum()),
            n_relevant_lost=int((taken & relevant).sum()),
            n_topics_without_relevant=int((before & ~after).sum()),
            effects=tuple(self._effects(values, judged, members)),
        )

    def _effects(self, values: _Values, judged: Floats, members: Flags) -> Iterator[Effect]:
        for at, one in enumerate(self.measures):
            tables = [np.array([row[at] for row in each]) for each in (self.values, values)]
            means, means_without = (np.nanmean(table, axis=1) for table in tables)
            ranks, ranks_without = (_ranks(table) for table in tables)
            for run, name in enumerate(self.pool.family.runs):
                low = high = float("nan")
                if members[run]:
                    has = ~np.isnan(self.values[run][at])
                    pair = values[run][at][has], self.values[run][at][has]
                    difference = compare_over_topics(
                        *pair, test="t", confidence=self.settings.confidence
                    )
                    low, high = difference.ci_low, difference.ci_high
                yield Effect(
                    run=name,
                    measure=one,
                    is_left_out=bool(members[run]),
                    mean=float(means[run]),
                    mean_without=float(means_without[run]),
                    change=float(means_without[run] - means[run]),
                    ci_low=low,
                    ci_high=high,
                    rank=int(ranks[run]),
                    rank_without=int(ranks_without[run]),
                    judged=float(self.judged[run, at]),
                    judged_without=float(judged[run, at]),
                )


def _ranks(values: Floats) -> Integers:
    """1 for the best; what is the same to 1e-12 shares the better rank."""
    [scores] = weighted_scores(values, np.ones((1, values.shape[1])))
    return np.asarray(1 + (scores[None, :] > scores[:, None] + 1e-12).sum(axis=1))


def _expectations(
    left_out: Sequence[LeftOut],
    measures: Sequence[Measure],
    family: Families,
    settings: Settings,
) -> Iterator[Row]:
    """By groups where there are any, and by systems where there are none."""
    unit: Unit = "group" if family.has_groups else "system"
    of_unit = [each for each in left_out if each.unit == unit]
    for one in measures:
        drops = [-float(np.mean([row.change for row in each.own(one)])) for each in of_unit]
        yield expectation_record(
            expected_underestimate(drops, confidence=settings.confidence), one, unit
        )


def _notes(record: Reusability, pool: Pooled) -> Iterator[str]:
    if record.is_depth_inferred:
        yield (
            f"the pool's depth was not named; to rank {record.pool_depth} all documents of the "
            "pooled runs are in the qrels"
        )
    if record.is_rising:
        yield (
            f"relevant documents still rise with the pool's depth: rank {record.pool_depth} "
            f"brought {record.last_share:.1%} of them, so that more lie below"
        )
    if not record.has_provenance and record.share_in_qrels < LEAST_IN_QRELS:
        yield (
            f"of the documents that the pooled runs list to rank {record.pool_depth}, "
            f"{record.share_in_qrels:.0%} are in the qrels: the pool was hardly so deep, and what "
            "a system outside it loses is more than is said here"
        )
    if record.has_provenance:
        yield CodedText(
            "what each run brought is what the pool took of it, topic by topic, as its record "
            "says; what other sources brought stays",
            code="provenance",
        )
    if n := int((~pool.is_brought).sum()):
        yield CodedText(
            f"{count_of(n, 'document')} of the qrels were in no pooled run to rank "
            f"{record.pool_depth}; whoever is left out, they stay",
            code="in_no_pooled_run",
        )
    n_units = record.expectations[0]["n_left_out"]
    if LEAST_GROUPS <= n_units < FEW_GROUPS:
        yield CodedText(
            f"below {FEW_GROUPS} left out, what an outside system loses is a rough guide",
            code="few_groups",
        )
    if not pool.family.has_groups:
        yield CodedText(
            "no groups were named: a system whose relative stays in the pool loses less than an "
            "outside one does",
            code="no_groups",
        )
    if most := max(each.n_topics_without_relevant for each in record.left_out):
        yield CodedText(
            f"leaving out takes the last relevant document of up to {count_of(most, 'topic')}, "
            "which count as 0",
            code="last_relevant",
        )
