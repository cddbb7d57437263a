"""Small studies for the tests of every room, written row by row and not by the importers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from annotation.flags import count_judgments_change, flag_submissions
from annotation.models import Annotator, Candidate, Item, Judgment, Question, Study, Submission

ACCEPTABLE = "acceptable"
TWO_POOLS = {"boot": ("clog", "pump", "flat"), "gown": ("skirt", "coat")}


def rating_study(
    slug: str = "ratings",
    *,
    n_items: int = 3,
    systems: Sequence[str] = ("alpha", "beta"),
    questions: Sequence[str] = ("appropriateness",),
    level: str = "interval",
    conditions: Sequence[str] = ("",),
    **fields: Any,
) -> Study:
    """Items d0, d1, ... with a response of each system, rated 0-100; nobody has rated yet.

    Conditions go round the items in turn; `fields` are the study's own (owner, title, ...).
    """
    study = Study.objects.create(**_with_title(slug, fields), kind=Study.Kind.RATING)
    for position, name in enumerate(questions):
        Question.objects.create(
            study=study,
            name=name,
            wording=f"{name}?",
            level=level,
            position=position,
            low_label="bad",
            high_label="good",
        )
    for position in range(n_items):
        item = Item.objects.create(
            study=study,
            key=f"d{position}",
            condition=conditions[position % len(conditions)],
            context=f"Context {position}",
            reference=f"Reference {position}",
            position=position,
        )
        add_candidates(item, systems, are_systems=True)
    return study


def alternatives_study(
    slug: str = "alternatives", *, pools: Mapping[str, Sequence[str]] = TWO_POOLS, **fields: Any
) -> Study:
    """An item for each target with its pool of products; nobody has ticked any yet."""
    study = Study.objects.create(**_with_title(slug, fields), kind=Study.Kind.ALTERNATIVES)
    Question.objects.create(
        study=study,
        name=ACCEPTABLE,
        wording="Which are acceptable?",
        level=Question.Level.NOMINAL,
        scale_max=1,
        categories=["no", "yes"],
    )
    for position, (target, pool) in enumerate(pools.items()):
        item = Item.objects.create(study=study, key=target, context=target, position=position)
        add_candidates(item, pool)
    return study


def rated_study(slug: str = "rated", **fields: Any) -> Study:
    """A rating study of 3 items and 2 systems that Ann and Bob have rated, beta the better.

    Every question has the same values: Ann's are 20, 21, 22 for alpha and 50, 51, 52 for
    beta, and Bob's are 5 more.
    """
    study = rating_study(slug, **fields)
    systems = systems_of(study)
    for question in study.questions.all():
        for person, more in (("Ann", 0), ("Bob", 5)):
            for index, item in enumerate(study.items.all()):
                values = {name: 20 + 30 * rank + index + more for rank, name in enumerate(systems)}
                rate(study, person, item.key, values, question=question.name)
    return study


def ticked_study(slug: str = "ticked", **fields: Any) -> Study:
    """The two pools, with Ann's ticks: clog and pump for the boot, none for the gown."""
    study = alternatives_study(slug, **fields)
    tick(study, "Ann", "boot", {"clog", "pump"})
    tick(study, "Ann", "gown", set())
    return study


def add_candidates(item: Item, keys: Iterable[str], *, are_systems: bool = False) -> None:
    """Candidates of these keys, in this order; a system's response, or a product."""
    for position, key in enumerate(keys):
        Candidate.objects.create(
            item=item,
            key=key,
            system=key if are_systems else "",
            text=f"{key} on {item.key}",
            position=position,
        )


def rate(
    study: Study,
    person: str,
    item: str,
    values: Mapping[str, float],
    *,
    question: str | None = None,
    round: int = 1,
    status: str = Submission.Status.APPROVED,
) -> Submission:
    """One person's finished pass over one item: a value for each candidate named.

    The question is the study's first where none is named; a second question of the same
    pass joins the submission that is there.
    """
    judged_question = (
        study.questions.get(name=question) if question else study.questions.get(position=0)
    )
    annotator, _ = Annotator.objects.get_or_create(study=study, pseudonym=person)
    submission, _ = Submission.objects.get_or_create(
        item=study.items.get(key=item),
        annotator=annotator,
        round=round,
        defaults={"status": status, "raw": "{}", "shown_order": list(values)},
    )
    for position, (key, value) in enumerate(values.items()):
        Judgment.objects.create(
            submission=submission,
            candidate=submission.item.candidates.get(key=key),
            question=judged_question,
            value=value,
            position=position,
            seconds=1.5,
        )
    count_judgments_change(study_ids=[study.pk])
    return submission


def tick(
    study: Study,
    person: str,
    item: str,
    ticked: Collection[str],
    *,
    round: int = 1,
    status: str = Submission.Status.APPROVED,
) -> Submission:
    """One person's ticks in one pool; what was left unticked is judged 0."""
    pool = study.items.get(key=item).candidates.values_list("key", flat=True)
    values = {key: float(key in ticked) for key in pool}
    return rate(study, person, item, values, round=round, status=status)


def systems_of(study: Study) -> list[str]:
    first = study.items.first()
    return list(first.candidates.values_list("system", flat=True)) if first else []


def _with_title(slug: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"slug": slug, "title": slug.title(), **fields}


def doubt(*submissions: Submission) -> None:
    rows = Submission.objects.filter(pk__in=[submission.pk for submission in submissions])
    flag_submissions(submissions=rows, reason="too fast")


def make_simulated(study: Study, n: int | None = None) -> None:
    """Say of the first submissions, or of all, that a program has made them up."""
    keys = list(Submission.objects.of(study).order_by("pk").values_list("pk", flat=True)[:n])
    Submission.objects.filter(pk__in=keys).update(is_simulated=True)
    count_judgments_change(study_ids=[study.pk])
    study.refresh_from_db()
