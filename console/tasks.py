"""Work that a page asks for and the background worker does."""

from collections.abc import Callable

from django_tasks import task

from annotation.exceptions import AnnotationError
from annotation.label_sets import make_label_set
from annotation.models import Study
from console.doing import Telling, claim, finish
from console.exceptions import ConsoleError, WorkStopped
from console.forms import rule_of
from console.models import Work
from console.results import compute
from hits.collect import Collected, collect_batch
from hits.endpoints import connect
from hits.exceptions import HitsError
from hits.models import Batch
from metrics.exceptions import MetricsError
from metrics.scoring import named_scorer, score_study
from presentation.exceptions import PresentationError

EXPECTED = (AnnotationError, ConsoleError, HitsError, MetricsError, PresentationError)


@task()
def do_work(work_id: int) -> str:
    """Do the work noted under that key, unless it was stopped or taken; return its last state."""
    work = claim(work_id)
    if work is None:
        return "not queued"
    try:
        told = DOERS[Work.Kind(work.kind)](work)
    except WorkStopped as stopped:
        return _end(work, Work.State.STOPPED, str(stopped))
    except EXPECTED as error:
        return _end(work, Work.State.FAILED, str(error))
    except Exception as error:
        told = f"Something nobody expected: {type(error).__name__}. The site's log has the rest."
        _end(work, Work.State.FAILED, told)
        raise
    return _end(work, Work.State.DONE, told)


def _end(work: Work, state: Work.State, told: str) -> str:
    finish(work=work, state=state, told=told)
    return state


def _collect(work: Work) -> str:
    """Collect the answers to all of a study's HITs."""
    batches = Batch.objects.of(work.study).started()
    found = [_collected(work, batch) for batch in batches]
    n_new = sum(collected.n_new for collected in found)
    return f"{n_new} new assignment{'' if n_new == 1 else 's'}."


def _collected(work: Work, batch: Batch) -> Collected:
    client = connect(batch.profile)
    telling = Telling(work, f"HITs of batch {batch.pk}")
    return collect_batch(batch=batch, client=client, progress=telling)


def _score(work: Work) -> str:
    """Score a study's candidates with each metric."""
    found = [
        score_study(study=work.study, scorer=named_scorer(name), progress=Telling(work, name))
        for name in work.names
    ]
    return " ".join(str(scored) for scored in found)


def _label(work: Work) -> str:
    """Make a set of labels by the rule that was asked for."""
    question = work.study.questions.get(name=work.arguments["question"])
    made = make_label_set(question=question, rule=rule_of(work.arguments), made_by=work.asked_by)
    told = "" if made.is_new else " They were made of the same before."
    return f"Labels {made.label_set.version} of {question.name}, by {made.label_set.method}.{told}"


def _result(work: Work) -> str:
    """Compute and keep what a page shows."""
    study = Study.objects.get(pk=work.study_id)
    for name in work.names:
        compute(study, name, progress=Telling(work, "step"))
    return ""


DOERS: dict[Work.Kind, Callable[[Work], str]] = {
    Work.Kind.COLLECT: _collect,
    Work.Kind.SCORE: _score,
    Work.Kind.RESULT: _result,
    Work.Kind.LABEL: _label,
}
