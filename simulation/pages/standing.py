"""How far work in the background is that has several jobs, as a page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulation.models import ExperimentVersion, StoredRecommender
from simulation.stored_experiments import jobs_of
from simulation.stored_training import subject_of_training
from work.models import Job


@dataclass(frozen=True)
class Standing:
    """Parts done of all (0 where that is not known yet), and what of it failed or was stopped."""

    n_done: int
    n_total: int
    is_finished: bool
    jobs: Sequence[Job]

    @property
    def is_under_way(self) -> bool:
        return not self.is_finished and any(job.is_unfinished for job in self.jobs)

    @property
    def is_running(self) -> bool:
        return any(job.state == Job.State.RUNNING for job in self.jobs)

    @property
    def problems(self) -> list[str]:
        """What jobs that failed say, each once."""
        failed = [job.message for job in self.jobs if job.state == Job.State.FAILED]
        return list(dict.fromkeys(failed))


def standing_of_run(version: ExperimentVersion) -> Standing:
    """The pieces of a run, and its evaluation as one more part."""
    if version.finished_at is not None:
        return Standing(version.n_pieces + 1, version.n_pieces + 1, True, [])
    n_done = version.pieces.exclude(done_at=None).count()
    n_total = version.n_pieces + 1 if version.n_pieces else 0
    return Standing(n_done, n_total, False, jobs_of(version))


def standing_of_training(row: StoredRecommender) -> Standing:
    """The epochs of a training."""
    is_finished = row.finished_at is not None
    jobs = [] if is_finished else list(Job.objects.about(subject_of_training(row))[:1])
    return Standing(row.epochs.count(), row.n_epochs, is_finished, jobs)
