from functools import partial

from results.computing import compute_result
from results.kinds import result_kind, result_kinds
from work.execution import RunningJob
from work.registry import INTERACTIVE, register


def compute_named_result(name: str, running: RunningJob) -> str:
    # Kinds can share a job, as those of studies do. Jobs of version 0.2.0 do not name their kind.
    return compute_result(result_kind(running.arguments.get("kind", name)), running)


for kind in result_kinds().values():
    register(kind.job, label=kind.job_label, queue=INTERACTIVE, refusals=kind.refusals)(
        partial(compute_named_result, kind.name)
    )
