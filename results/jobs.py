from functools import partial

from results.computing import compute_result
from results.kinds import result_kinds
from work.registry import INTERACTIVE, register

for kind in result_kinds().values():
    register(kind.job, label=kind.job_label, queue=INTERACTIVE, refusals=kind.refusals)(
        partial(compute_result, kind)
    )
