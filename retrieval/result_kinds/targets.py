from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from django.utils.translation import gettext as _, gettext_lazy

from accounts.models import User
from presentation.progress import Reporter
from results.computing import request_result
from results.kinds import Computed, Given, register_kind
from results.models import Result
from retrieval.exceptions import PoolUnfit
from retrieval.file_readings import note_fits
from retrieval.models import Collection, CollectionFile, ResultType, SampledTarget
from retrieval.pools.records import Target
from retrieval.pools.sampling import TargetSample, difficulty, draw_targets, targets_of_source
from retrieval.result_kinds.base import CollectionKind, write_rows
from retrieval.result_kinds.pool import opened_source
from retrieval.stored_files import files_on_disk
from work.models import Job

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
