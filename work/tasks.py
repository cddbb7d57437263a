"""The one task there is: the Tasks API carries the keys of jobs, and the jobs say the rest."""

from django_tasks import task

from work.execution import run_job
from work.registry import INTERACTIVE


@task(queue_name=INTERACTIVE)
def do_job(job_id: int) -> str:
    """Do the job of that key, unless it was stopped, is done, or is being done."""
    return run_job(job_id)
