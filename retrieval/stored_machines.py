"""A machine's labels beside people's of a sample: requested, computed once, stored as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from retrieval.exceptions import RunsUnfit
from retrieval.models import (
    CollectionFile,
    CollectionVersion,
    MachineEstimate,
    MachineFacts,
    ModelBias,
)
from retrieval.reuse.machine import compare_machine
from retrieval.reuse.machine_records import MachineComparison
from retrieval.stored_evaluations import settings_of
from retrieval.stored_files import opened_files
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

COMPARE_MACHINE = "compare_collection_machine"
FORM = 2
"""Of the rows; those of another form are not taken for the same."""
FACTS = (*("qrels", "machine", "sample", "n_topics_people", "n_topics_machine", "n_topics_both"),)
# What a measure that cannot be calibrated lacks, and what is printed beside it.
NOT_STORED = {"machine_n_topics", "gap_n_topics", "lambda", "n_labelled", "n", "notes"}


def request_machine(
    *,
    collection: Collection,
    qrels: CollectionFile,
    machine: CollectionFile,
    runs: Sequence[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
) -> Job:
    """Have a machine's labels set beside people's; `rules` name runs that share its model."""
    settings_of(rules)
    if machine == qrels:
        raise RunsUnfit(_("Choose people's qrels, and a machine's."))
    if not runs:
        raise RunsUnfit(_("Choose at least one run."))
    named = {**rules, "people": qrels.name, "machine": machine.name}
    return request_version(
        collection=collection,
        job_kind=COMPARE_MACHINE,
        files=[qrels, machine, *runs],
        rules=named,
        actor=actor,
    )


def compare_collection_machine(running: RunningJob) -> str:
    """Set a machine's labels beside people's, and store what comes of it."""
    draft = draft_of(running, CollectionVersion.Kind.MACHINE, FORM)
    files, rules = draft.files, draft.rules

    def compute() -> CollectionVersion:
        with opened_files(files) as (runs, qrels):
            compared = compare_machine(
                runs,
                qrels[rules["people"]],
                qrels[rules["machine"]],
                rules.get("sharing", []),
                settings_of(rules),
                sample=rules.get("sample") or None,
                progress=running.progress(_("run")),
            )
        with transaction.atomic():
            version = draft.create(seed=rules.get("seed", 0), n_topics=compared.n_topics_both)
            write_files(version, files)
            _write(version, compared)
        return version

    return draft.once(compute)


def _write(version: CollectionVersion, compared: MachineComparison) -> None:
    facts = {name: getattr(compared, name) for name in FACTS}
    MachineFacts.objects.create(version=version, **facts)
    write_rows(MachineEstimate, _estimates(version, compared))
    biases = (one.record() for one in compared.biases)
    write_rows(
        ModelBias,
        ({**one, "version": version, "reason": one["reason"] or ""} for one in biases),
    )
    write_notes(version, compared.notes)


def _estimates(version: CollectionVersion, compared: MachineComparison) -> Iterator[dict[str, Any]]:
    for one in compared.estimates:
        record = {name: value for name, value in one.record().items() if name not in NOT_STORED}
        yield {**record, "version": version, "reason": record["reason"] or ""}
