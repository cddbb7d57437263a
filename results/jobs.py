from results.computing import compute_result
from results.kinds import result_kind, result_kinds
from work.execution import RunningJob
from work.registry import INTERACTIVE, register


def compute_named_result(running: RunningJob) -> str:
    return compute_result(result_kind(running.arguments["kind"]), running)


# Kinds can share a job, as those of studies do.
for kind in result_kinds().values():
    register(kind.job, label=kind.job_label, queue=INTERACTIVE, refusals=kind.refusals)(
        compute_named_result
    )
