import numpy as np

from annotation.flags import count_judgments_change
from annotation.models import Annotator, Judgment, Study, Submission
from config.samples import load_sample_studies
from metrics.study_scores import named_scorer, score_study

# Those of the sample that need no model.
METRICS = ("rouge1", "rouge2", "rougeL", "sacrebleu", "chrf")


def rated_sample(owner, *, seed=3, metrics=METRICS):
    """Ratings that follow the system with noise; each annotator left one page out, and one
    submission is rejected."""
    study = load_sample_studies(owner=owner)[0]
    rng = np.random.default_rng(seed)
    items = list(study.items.prefetch_related("candidates"))
    questions = list(study.questions.all())
    for number in range(4):
        annotator = Annotator.objects.create(study=study, pseudonym=f"A{number:010d}")
        for item in items[:number] + items[number + 1 :]:
            submission = Submission.objects.create(
                item=item, annotator=annotator, raw="{}", seconds=60.0 + number
            )
            Judgment.objects.bulk_create(
                Judgment(
                    submission=submission,
                    candidate=candidate,
                    question=question,
                    value=float(np.clip(round(35 + 10 * at + rng.normal(0, 15)), 0, 100)),
                )
                for at, candidate in enumerate(item.candidates.all())
                for question in questions
            )
    Submission.objects.filter(pk=submission.pk).update(status=Submission.Status.REJECTED)
    count_judgments_change(study_ids=[study.pk])
    for name in metrics:
        score_study(study=study, scorer=named_scorer(name))
    return Study.objects.get(pk=study.pk)
