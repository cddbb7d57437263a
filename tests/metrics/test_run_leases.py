import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from metrics import exceptions, stored_scores, study_scores
from metrics.models import Score, ScoringRun
from tests.annotation.studies import rating_study
from tests.codes import refused_naming
from tests.metrics.counting import Counting, SwitchedOff

pytestmark = pytest.mark.django_db

State = ScoringRun.State


def the_run():
    return ScoringRun.objects.get(leader=None)


def run_leased_for(term):
    """A study of six candidates whose run says that another process is scoring it."""
    study = rating_study()
    lease = {"lease_token": "another", "leased_until": timezone.now() + term}
    named = {"metric": "counting", "signature": Counting().signature}
    return study, ScoringRun.objects.create(study=study, state=State.RUNNING, **named, **lease)


def test_a_run_says_how_far_it_was_and_who_alone_has_it_while_it_is_scored():
    states = []

    class Watched(Counting):
        def measure(self, examples):
            with refused_naming(exceptions.RunBusy, "counting", "ratings"):
                study_scores.score_study(study=study, scorer=Counting())
            run = the_run()
            states.append((run.state, run.n_before, run.n_total, run.lease_token))
            return super().measure(examples)

    study = rating_study(n_items=4)
    assert study_scores.score_study(study=study, scorer=Watched()).n_scored == 8
    token = states[0][-1]
    assert token
    assert states == [(State.RUNNING, 0, 8, token)] * 2
    run = the_run()
    assert (run.state, run.error, run.lease_token) == (State.DONE, "", "")
    assert run.leased_until is None


@pytest.mark.parametrize(
    "failure", [SwitchedOff("E17"), KeyboardInterrupt(), InterruptedError("E18")]
)
def test_a_run_that_broke_off_says_why_and_may_be_taken_up_again(failure):
    class Failing(Counting):
        def measure(self, examples):
            if self.n_batches == 1 and not isinstance(failure, InterruptedError):
                raise failure
            return super().measure(examples)

    def progress(things, total):
        for number, thing in enumerate(things, start=1):
            yield thing
            if number == 4:  # stopped between batches
                raise failure

    study, scorer = rating_study(), Counting()
    with pytest.raises(type(failure)):
        study_scores.score_study(study=study, scorer=Failing(), progress=progress)
    assert the_run().state == State.FAILED
    assert the_run().error == (str(failure) or "KeyboardInterrupt")
    assert study_scores.score_study(study=study, scorer=scorer).n_known == 4
    assert (the_run().state, the_run().error, the_run().n_before) == (State.DONE, "", 4)
    assert len(scorer.seen) == 2


def test_a_run_that_another_process_took_over_is_let_go_of_before_the_next_batch_is_written():
    class Slow(Counting):
        def measure(self, examples):
            if self.n_batches == 1:
                ScoringRun.objects.update(lease_token="", leased_until=None)
                study_scores.score_study(study=study, scorer=other)
            return super().measure(examples)

    study, other = rating_study(), Counting()
    with pytest.raises(exceptions.RunTaken):
        study_scores.score_study(study=study, scorer=Slow())
    assert len(other.seen) == 2
    assert the_run().state == State.DONE
    assert Score.objects.filter(run=the_run()).count() == 6


def test_a_run_is_left_to_its_process_until_its_lease_lapses():
    study, run = run_leased_for(timedelta(seconds=10))
    with pytest.raises(exceptions.RunBusy):
        study_scores.score_study(study=study, scorer=Counting())
    ScoringRun.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert study_scores.score_study(study=study, scorer=Counting()).n_scored == 6
    run.refresh_from_db()
    assert run.state == State.DONE


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_batch_that_is_silent_for_longer_than_the_lease_is_not_scored_twice(settings):
    settings.WORK_LEASE_SECONDS = 0.8
    n_looks = 3

    class Silent(Counting):
        def measure(self, examples):
            for _ in range(n_looks):
                time.sleep(0.5)
                with pytest.raises(exceptions.RunBusy):
                    study_scores.score_study(study=study, scorer=Counting())
            return super().measure(examples)

    study, scorer = rating_study(n_items=2), Silent()
    assert study_scores.score_study(study=study, scorer=scorer).n_scored == 4
    assert scorer.n_batches == 1


@pytest.mark.django_db(transaction=True)
def test_a_run_keeps_the_transaction_that_writes_even_after_its_lease_lapsed():
    """Nobody takes a run over while its holder is writing; on SQLite nobody else writes at all."""
    study, run = run_leased_for(timedelta(seconds=-1))
    lease = stored_scores.RunLease(run, "another")
    outcome = []

    def take_over():
        try:
            with stored_scores.leased(run, n_before=0, n_total=6):
                outcome.append("taken over")
        except exceptions.RunBusy:
            outcome.append("busy")
        finally:
            connection.close()

    with transaction.atomic():
        lease.hold()
        if connection.vendor == "postgresql":
            other = threading.Thread(target=take_over)
            other.start()
            other.join(20)
            assert outcome == ["busy"]
    study_scores.score_study(study=study, scorer=Counting())
    with pytest.raises(exceptions.RunTaken), transaction.atomic():
        lease.hold()
