import os
import socket
import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from metrics.claiming import LOST_AFTER, is_abandoned, stop_run
from metrics.exceptions import RunBusy, RunTaken
from metrics.models import Score, ScoringRun
from metrics.scoring import score_study
from tests.annotation.studies import rating_study
from tests.metrics.counting import Counting

pytestmark = pytest.mark.django_db

State = ScoringRun.State


def the_run():
    return ScoringRun.objects.leading().get()


def held_by(holder, *, seen_at=None):
    """A study of six candidates whose run says that this process is scoring it."""
    study = rating_study()
    run = ScoringRun.objects.create(
        study=study,
        metric="counting",
        signature=Counting().signature,
        state=State.RUNNING,
        claimed_by=holder,
        seen_at=seen_at or timezone.now(),
    )
    return study, run


def test_a_run_says_how_far_it_was_and_who_has_it_while_it_is_scored():
    states = []

    class Watched(Counting):
        def measure(self, examples):
            run = the_run()
            states.append((run.state, run.n_before, run.n_total, run.claimed_by != ""))
            return super().measure(examples)

    score_study(study=rating_study(n_items=4), scorer=Watched())
    assert states == [(State.RUNNING, 0, 8, True)] * 2
    run = the_run()
    assert (run.state, run.error, run.claimed_by) == (State.DONE, "", "")
    assert run.started_at <= run.seen_at


def test_a_run_that_broke_off_says_why_and_may_be_taken_up_again():
    study = rating_study()
    with pytest.raises(OSError, match="switched off"):
        score_study(study=study, scorer=Counting(fails_at_batch=2))
    assert (the_run().state, the_run().error) == (State.FAILED, "the machine was switched off")
    score_study(study=study, scorer=Counting())
    assert (the_run().state, the_run().error, the_run().n_before) == (State.DONE, "", 4)


def test_an_interrupted_run_says_so():
    class Interrupted(Counting):
        def measure(self, examples):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_study(study=rating_study(), scorer=Interrupted())
    assert (the_run().state, the_run().error) == (State.FAILED, "KeyboardInterrupt")


def test_two_processes_do_not_score_the_same_run():
    busy = []

    class Overtaken(Counting):
        def measure(self, examples):
            with pytest.raises(RunBusy, match="counting is being scored already in study 'rat"):
                score_study(study=study, scorer=Counting())
            busy.append(the_run().claimed_by)
            return super().measure(examples)

    study = rating_study()
    assert score_study(study=study, scorer=Overtaken()).n_scored == 6
    assert len(busy) == 2
    assert busy[0] == busy[1]


def test_a_run_that_another_process_took_over_is_let_go_of_before_the_next_batch_is_written():
    class Stopped(Counting):
        def measure(self, examples):
            if self.n_batches == 1:
                stop_run(run=the_run())
                score_study(study=study, scorer=other)
            return super().measure(examples)

    study, other = rating_study(), Counting()
    with pytest.raises(RunTaken, match="what was done is kept"):
        score_study(study=study, scorer=Stopped())
    assert len(other.seen) == 2
    assert the_run().state == State.DONE
    assert Score.objects.filter(run=the_run()).count() == 6


def test_a_stopped_run_says_so():
    _, run = held_by(f"elsewhere {os.getpid()} 0 0")
    stop_run(run=run)
    assert (the_run().state, the_run().error) == (State.FAILED, "Stopped; what was done is kept.")


def test_stopping_a_run_that_is_done_changes_nothing():
    score_study(study=rating_study(), scorer=Counting())
    stop_run(run=the_run())
    assert the_run().state == State.DONE


def test_the_run_of_a_process_that_was_killed_is_taken_over_at_once():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    study, run = held_by(f"{socket.gethostname()} {gone.pid} 0 0")
    assert is_abandoned(run)
    assert score_study(study=study, scorer=Counting()).n_scored == 6


def test_the_run_of_an_earlier_process_with_this_ones_number_is_taken_over():
    _, run = held_by(f"{socket.gethostname()} {os.getpid()} 0 0")
    assert is_abandoned(run)


def test_the_run_of_a_process_on_this_machine_is_left_to_it_however_long_it_is_silent():
    long_ago = timezone.now() - 2 * LOST_AFTER
    _, run = held_by(f"{socket.gethostname()} {os.getppid()} 0 0", seen_at=long_ago)
    assert not is_abandoned(run)


@pytest.mark.parametrize(
    ("silent_for", "is_lost"), [(timedelta(minutes=1), False), (2 * LOST_AFTER, True)]
)
def test_the_run_of_another_machine_is_taken_over_after_a_long_silence(silent_for, is_lost):
    study, run = held_by("elsewhere 1 0 0", seen_at=timezone.now() - silent_for)
    assert is_abandoned(run) == is_lost
    if is_lost:
        assert score_study(study=study, scorer=Counting()).n_scored == 6
    else:
        with pytest.raises(RunBusy):
            score_study(study=study, scorer=Counting())


def test_a_run_that_is_done_is_not_abandoned():
    score_study(study=rating_study(), scorer=Counting())
    assert not is_abandoned(the_run())


def test_work_that_is_stopped_between_batches_says_so_and_may_be_taken_up_again():
    def progress(things, total):
        for place, thing in enumerate(things, start=1):
            yield thing
            if place == 4:
                raise InterruptedError("Stopped as asked.")

    study, scorer = rating_study(), Counting()
    with pytest.raises(InterruptedError):
        score_study(study=study, scorer=Counting(), progress=progress)
    assert (the_run().state, the_run().error) == (State.FAILED, "Stopped as asked.")
    assert score_study(study=study, scorer=scorer).n_known == 4
    assert len(scorer.seen) == 2
