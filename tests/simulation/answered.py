from collections.abc import Mapping, Sequence
from random import Random

from annotation.flags import count_judgments_change
from annotation.models import Annotator, Candidate, Judgment, Question, Study, Submission
from simulation.models import StoredExperiment

PEOPLE = ("Ann", "Bob", "Cyd", "Dan", "Eva", "Flo")


def answer_outcomes(study: Study, experiment: StoredExperiment, *, errs: float = 0.05) -> None:
    """All would take what was accepted in the experiment, but err now and then."""
    accepted = set(experiment.judgments.filter(grade__gte=1).values_list("target", "item"))
    question = study.questions.get(name="would_do")
    for person in PEOPLE:
        annotator = Annotator.objects.create(study=study, pseudonym=person)
        for item in study.items.prefetch_related("candidates"):
            submission = _submission(annotator, item.pk)
            chance = Random(f"{person} {item.key}")
            values = {
                one: ((item.key, one.key) in accepted) != (chance.random() < errs)
                for one in item.candidates.all()
            }
            _judge(submission, question, values)
    count_judgments_change(study_ids=[study.pk])


def answer_switching(
    study: Study,
    *,
    after_loss: float = 0.8,
    after_gain: float = 0.1,
    people: Sequence[str] = PEOPLE,
    leaving: bool = False,
) -> None:
    """All switch with a probability after a loss and with another after a gain, to the nearest; or
    all leave."""
    questions: dict[str, Question] = {one.name: one for one in study.questions.all()}
    turns = {one.item_id: one for one in study.dialogues.turns.all()}
    for person in people:
        annotator = Annotator.objects.create(study=study, pseudonym=person)
        for item in study.items.prefetch_related("candidates"):
            turn, chance = turns[item.pk], Random(f"{person} {item.key}")
            p_switch = after_loss if turn.delta < 0 else after_gain
            switches = chance.random() < p_switch and not leaving
            submission = _submission(annotator, item.pk)
            _judge(submission, questions["decision"], {None: 2 if leaving else int(switches)})
            taken = {one: one.key == turn.nearest for one in item.candidates.all()}
            _judge(submission, questions["taken"], taken if switches else {})
    count_judgments_change(study_ids=[study.pk])


def _judge(
    submission: Submission, question: Question, values: Mapping[Candidate | None, float]
) -> None:
    Judgment.objects.bulk_create(
        Judgment(submission=submission, question=question, candidate=one, value=value)
        for one, value in values.items()
    )


def _submission(annotator: Annotator, item: int) -> Submission:
    return Submission.objects.create(item_id=item, annotator=annotator, round=1, raw="{}")
