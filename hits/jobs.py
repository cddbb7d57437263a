"""Collecting in the background."""

from annotation.exceptions import AnnotationError
from annotation.study_jobs import COLLECT, study_of
from hits.collect import Collected, collect_batch
from hits.connections import client_of
from hits.exceptions import HitsError
from hits.models import Batch
from work.execution import RunningJob
from work.registry import INTERACTIVE, register


@register(
    COLLECT,
    label="Collecting answers",
    queue=INTERACTIVE,
    refusals=(AnnotationError, HitsError),
)
def collect(running: RunningJob) -> str:
    """Collect the answers to all of a study's HITs."""
    batches = Batch.objects.of(study_of(running)).started()
    n_new = sum(_collect_batch(running, batch).n_new for batch in batches)
    return f"{n_new} new assignment{'' if n_new == 1 else 's'}."


def _collect_batch(running: RunningJob, batch: Batch) -> Collected:
    client = client_of(batch.connection)
    progress = running.progress(f"HITs of batch {batch.pk}")
    return collect_batch(batch=batch, client=client, progress=progress)
