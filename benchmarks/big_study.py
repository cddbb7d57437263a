"""A study of any size, written in bulk: for benchmarks of what reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Item, Study

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
N_ANNOTATORS = 40
SYSTEMS = ("alpha", "beta", "gamma", "delta")
QUESTIONS = ("appropriateness", "style")
BATCH_SIZE = 5000
# Far from uniform, the same on every database: a candidate's own level, and its judges' noise.
JUDGMENTS = """
INSERT INTO annotation_judgment (submission_id, candidate_id, question_id, value, position, seconds)
SELECT s.id, c.id, q.id,
    (c.id * 37 + q.position * 11) %% 61 + (s.id * 31 + c.id * 17 + q.id * 13) %% 37,
    c.position, 4.5
FROM annotation_submission s
JOIN annotation_item i ON i.id = s.item_id
JOIN annotation_candidate c ON c.item_id = i.id
JOIN annotation_question q ON q.study_id = i.study_id
WHERE i.study_id = %s
"""
SCORES = """
INSERT INTO metrics_score (run_id, candidate_id, value, reason, raw, content)
SELECT %s, c.id, (c.id * 37 %% 61) + (c.id * %s %% 53), '', '', ''
FROM annotation_candidate c JOIN annotation_item i ON i.id = c.item_id WHERE i.study_id = %s
"""


def build_items(owner: User, *, n_items: int, slug: str = "big") -> tuple[Study, list[Item]]:
    """A study under two questions, and its items of four systems' responses."""
    from annotation.models import Candidate, Item, Question, Study

    study = Study.objects.create(slug=slug, title=slug.title(), kind="rating", owner=owner)
    for position, name in enumerate(QUESTIONS):
        Question.objects.create(
            study=study,
            name=name,
            wording=f"{name}?",
            position=position,
            low_label="bad",
            high_label="good",
        )
    items = Item.objects.bulk_create(
        (
            Item(
                study=study,
                key=f"item-{n:06}",
                condition=("formal", "informal")[n % 2],
                context=f"A: What shall we do about number {n}?\nB: I do not know yet.",
                reference=f"Let us wait for number {n + 1}.",
                position=n,
            )
            for n in range(n_items)
        ),
        batch_size=BATCH_SIZE,
    )
    Candidate.objects.bulk_create(
        (
            Candidate(item=item, key=name, system=name, text=f"{name} on {item.key}", position=n)
            for item in items
            for n, name in enumerate(SYSTEMS)
        ),
        batch_size=BATCH_SIZE,
    )
    return study, items


def build_study(
    owner: User, *, n_items: int, n_annotators: int, slug: str = "big", one_waits_of: int = 50
) -> Study:
    """Items as of `build_items`, published, and judged by so many annotators; of so many
    submissions one waits for a decision."""
    from annotation.flags import count_judgments_change
    from annotation.models import Annotator, Submission

    study, items = build_items(owner, n_items=n_items, slug=slug)
    annotators = Annotator.objects.bulk_create(
        Annotator(study=study, pseudonym=f"annotator-{n:03}") for n in range(N_ANNOTATORS)
    )
    submissions = Submission.objects.bulk_create(
        (
            Submission(
                item=item,
                annotator=annotators[(n + 7 * position) % N_ANNOTATORS],
                raw="<QuestionFormAnswers/>",
                shown_order=list(SYSTEMS),
                accepted_at=NOON,
                submitted_at=NOON + timedelta(seconds=n),
                seconds=40,
            )
            for n, item in enumerate(items)
            for position in range(n_annotators)
        ),
        batch_size=BATCH_SIZE,
    )
    with connection.cursor() as cursor:
        cursor.execute(JUDGMENTS, [study.pk])
    _publish(study, items, submissions, one_waits_of)
    count_judgments_change(study_ids=[study.pk])
    analyze()
    return study


def add_scores(study: Study, names: tuple[str, ...]) -> None:
    from annotation.flags import count_scores_change
    from metrics.models import ScoringRun

    for n, name in enumerate(names):
        run = ScoringRun.objects.create(study=study, metric=name, signature=f"{name}|v:1")
        with connection.cursor() as cursor:
            cursor.execute(SCORES, [run.pk, 19 + 2 * n, study.pk])
    count_scores_change(study_id=study.pk)
    analyze()


def _publish(study: Study, items: list, submissions: list, one_waits_of: int) -> None:
    from hits.connections import site_connection
    from hits.models import Assignment, Batch, Hit, Worker

    batch = Batch.objects.create(
        study=study,
        connection=site_connection(),
        title="Judge responses",
        description="Read and judge.",
        reward_usd="0.10",
        max_assignments=len(submissions) // max(1, len(items)),
        hit_type_id="3TYPE",
    )
    hits = Hit.objects.bulk_create(
        (Hit(batch=batch, item=item, hit_id=f"3HIT{item.pk}") for item in items),
        batch_size=BATCH_SIZE,
    )
    hit_of = {hit.item_id: hit for hit in hits}
    workers = {
        pk: Worker(marketplace="local", worker_id=f"A{pk}")
        for pk in dict.fromkeys(one.annotator_id for one in submissions)
    }
    Worker.objects.bulk_create(workers.values())

    def assignments() -> Iterator[Assignment]:
        for one in submissions:
            yield Assignment(
                hit=hit_of[one.item_id],
                worker=workers[one.annotator_id],
                assignment_id=f"3ASSIGNMENT{one.pk}",
                status="Submitted" if one.pk % one_waits_of == 0 else "Approved",
                answer_xml="<QuestionFormAnswers>" + "x" * 900 + "</QuestionFormAnswers>",
                accepted_at=NOON,
                submitted_at=one.submitted_at,
                submission=one,
            )

    Assignment.objects.bulk_create(assignments(), batch_size=BATCH_SIZE)


def analyze() -> None:
    """What a database does by itself after a while, and a planner needs."""
    with connection.cursor() as cursor:
        is_alone = connection.vendor == "postgresql" and not connection.in_atomic_block
        cursor.execute("VACUUM ANALYZE" if is_alone else "ANALYZE")
