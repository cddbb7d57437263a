"""Comparisons of a collection's qrels: requested, computed once, stored as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from retrieval.exceptions import RunsUnfit
from retrieval.models import (
    AnyTwoAssessors,
    AssessorDesign,
    ChangedPair,
    CollectionFile,
    CollectionVersion,
    ComparedQrels,
    CrossedRunMean,
    FileTopic,
    LabelPair,
    RankedRun,
    RankingCoefficient,
    RankingPair,
)
from retrieval.rankings import ComparisonSettings, QrelsComparison, compare_qrels
from retrieval.rankings.assessor_records import AssessorsAgreement, LabelComparison, RandomDesign
from retrieval.rankings.records import RankingComparison
from retrieval.stored_evaluations import settings_of
from retrieval.stored_files import assessors_grades, opened_files
from retrieval.stored_versions import (
    draft_of,
    fingerprint_of,
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

COMPARE = "compare_collection_qrels"
FORM = 6
"""Of the rows; those of another form are not taken for the same."""
FEWEST = 2
MOST_SWAPS = 3
CHOSEN = ("rbo_p", "rbo_ties", "n_resamples", "n_draws")
"""Settings of a comparison that have defaults."""
Kind = CollectionFile.Kind


def comparison_settings(
    rules: Mapping[str, Any], files: Sequence[CollectionFile]
) -> ComparisonSettings:
    """Settings by their plain values; machines are the qrels that say so of themselves."""
    machines = [
        file.name
        for file in files
        if file.kind == Kind.QRELS and file.made_by == CollectionFile.MadeBy.MACHINE
    ]
    return ComparisonSettings(
        evaluation=settings_of(rules),
        truth=rules.get("truth") or None,
        top=rules.get("top") or None,
        machines=tuple(machines),
        **{name: rules[name] for name in CHOSEN if name in rules},
        judgments={one.name: one.judgments for one in files if one.kind == Kind.QRELS},
    )


def request_comparison(
    *,
    collection: Collection,
    qrels: Sequence[CollectionFile],
    runs: Sequence[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
    assessors: CollectionFile | None = None,
) -> Job:
    """Have runs ranked under several qrels in the background; RunsUnfit where it is impossible.

    `assessors` is a file of several assessors' grades, which needs no qrels beside it.
    """
    if len(qrels) < FEWEST and assessors is None:
        raise RunsUnfit(
            _("Choose two qrels or more: what is asked is how far they agree."),
            code="too_few_qrels",
        )
    if len(runs) < FEWEST:
        raise RunsUnfit(_("Choose two runs or more: one has no ranking."), code="too_few_runs")
    _require_common_topic([*qrels, *([assessors] if assessors else [])])
    comparison_settings(rules, qrels)
    files = [*qrels, *([assessors] if assessors else []), *runs]
    return request_version(
        collection=collection, job_kind=COMPARE, files=files, rules=rules, actor=actor
    )


def _require_common_topic(files: Sequence[CollectionFile]) -> None:
    """Refuse what would fail as a job; ends at the first topic that all files name."""
    first, *others = sorted(files, key=lambda file: file.n_topics)
    topics = FileTopic.objects.filter(file=first).order_by()
    for file in others:
        topics = topics.filter(Exists(FileTopic.objects.filter(file=file, topic=OuterRef("topic"))))
    if not topics.exists():
        raise RunsUnfit(_("The qrels have no topic in common."), code="no_common_topic")


def compare_collection(running: RunningJob) -> str:
    """Rank the runs of a job under each of its qrels, and store what comes of it."""
    draft = draft_of(running, CollectionVersion.Kind.COMPARISON, FORM)
    files, rules = draft.files, draft.rules
    qrels_files = [file for file in files if file.kind == Kind.QRELS]
    # Whoever describes a file anew, as another assessor's, has it compared anew.
    described = [[file.name, file.judgments, file.assessor] for file in qrels_files]
    fingerprint = fingerprint_of(FORM, files, {**rules, "described": described})
    draft = replace(draft, fingerprint=fingerprint)

    def compute() -> CollectionVersion:
        with opened_files(files) as (runs, qrels):
            settings = comparison_settings(rules, files)
            compared = compare_qrels(
                runs,
                qrels,
                settings,
                assessors=assessors_grades(files),
                progress=running.progress(_("qrels")),
            )
        with transaction.atomic():
            version = draft.create(seed=settings.evaluation.seed, n_topics=compared.n_topics)
            write_files(version, files)
            _write(version, compared, qrels_files)
        return version

    return draft.once(compute)


def _write(
    version: CollectionVersion, compared: QrelsComparison, files: Iterable[CollectionFile]
) -> None:
    write_rows(ComparedQrels, _sets(version, compared, files))
    write_rows(RankedRun, _ranked(version, compared))
    for pair in compared.pairs:
        _write_pair(version, pair)
    write_rows(LabelPair, (_label_pair(version, one) for one in compared.labels))
    if compared.assessors:
        AnyTwoAssessors.objects.create(version=version, **_any_two(compared.assessors))
    write_rows(AssessorDesign, (_design(version, one) for one in compared.random_assessor))
    write_rows(CrossedRunMean, _crossed(version, compared))
    write_notes(version, compared.notes)


def _sets(
    version: CollectionVersion, compared: QrelsComparison, files: Iterable[CollectionFile]
) -> Iterator[dict[str, Any]]:
    """The sets of labels, with whose judgments they are where a file's description says so."""
    by_name = {file.name: file for file in files}
    for one in compared.qrels:
        row = {"version": version, **vars(one)}
        if one.kind == "assessor":
            row |= {"judgments": one.name, "assessor": one.name}
        elif one.kind != "derived" and (file := by_name.get(one.name)):
            row |= {"judgments": file.judgments, "assessor": file.assessor, "rule": file.rule}
        yield row


def _design(version: CollectionVersion, design: RandomDesign) -> dict[str, Any]:
    record = design.record()
    shares = record.pop("tau_b")
    swaps = sorted(record.pop("swaps"), key=lambda swap: -swap["share"])[:MOST_SWAPS]
    often = ", ".join(f"{one['a']} > {one['b']} {one['share']:.0%}" for one in swaps)
    return {"version": version, **record, **shares, "often_swapped": often}


def _ranked(version: CollectionVersion, compared: QrelsComparison) -> Iterator[dict[str, Any]]:
    for ranking in compared.rankings:
        record = ranking.record()
        for system in record["systems"]:
            named = {"qrels": ranking.qrels, "measure": ranking.measure.name}
            yield {"version": version, **named, **system}


def _crossed(version: CollectionVersion, compared: QrelsComparison) -> Iterator[dict[str, Any]]:
    for one in compared.crossed:
        record = one.record()
        texts = {name: record[name] or "" for name in ("reason", "ci_method")}
        yield {"version": version, **record, **texts}


def _write_pair(version: CollectionVersion, pair: RankingComparison) -> None:
    record = pair.record()
    changes = {f"n_{change}": n for change, n in record["significance"].items()}
    counts = {name: record[name] for name in ("n_pairs", "n_swapped", "n_swapped_significantly")}
    row = RankingPair.objects.create(
        version=version,
        first=pair.first,
        second=pair.second,
        measure=pair.measure.name,
        rbo_min=record["rbo"].pop("min"),
        rbo_residual=record["rbo"].pop("residual"),
        **counts,
        **changes,
    )
    coefficients = {use: record[use] for use in ("tau_b", "tau_ap", "rbo", "top") if record[use]}
    for use, one in coefficients.items():
        one.pop("systems", None)
        texts = {name: one[name] or "" for name in ("reason", "ci_method")}
        RankingCoefficient.objects.create(pair=row, use=use, **(one | texts))
    changed = {(one["a"], one["b"]): one for one in [*record["swapped"], *record["changed"]]}
    write_rows(ChangedPair, ({"pair": row, **one} for one in changed.values()))


def _label_pair(version: CollectionVersion, one: LabelComparison) -> dict[str, Any]:
    record = one.record()
    counts = ("n_topics", "n_documents", "n_both_relevant", "n_either_relevant")
    row = {"version": version, "first": one.first, "second": one.second}
    row |= {name: record[name] for name in counts}
    for name in ("overlap", "kappa"):
        row |= _estimate(name, record[name])
    return row


def _any_two(one: AssessorsAgreement) -> dict[str, Any]:
    record = one.record()
    row = {name: record[name] for name in ("n_assessors", "n_pairs_of_labels", "n_documents")}
    for name in ("overlap", "alpha"):
        row |= _estimate(name, record[name])
        row[f"{name}_method"] = record[name]["ci_method"] or ""
    return row | {"warnings": "\n".join(record["warnings"])}


def _estimate(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value["value"],
        f"{name}_low": value["ci_low"],
        f"{name}_high": value["ci_high"],
        f"{name}_reason": value["reason"] or "",
    }
