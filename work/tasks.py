"""The one task there is: the Tasks API carries the keys of jobs, and the jobs say the rest."""

from django_tasks import task

from work.registry import INTERACTIVE, run_message


@task(queue_name=INTERACTIVE)
def do_job(job_id: int) -> str:
    """Do the job whose turn it is: the one of that key, or another of its queue that waits."""
    return run_message(job_id)
