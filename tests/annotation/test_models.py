import re
from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from accounts.models import User
from annotation.exceptions import StudyUnknown
from annotation.models import Annotator, Candidate, Item, Question, Study, Submission
from annotation.submission_imports import pseudonym
from tests.annotation import studies
from tests.codes import refused

pytestmark = pytest.mark.django_db


def _is_refused(create: Callable[[], object], *names: str) -> None:
    """The database itself refuses, and its error names the constraint or, in SQLite, the table."""
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        create()
    assert any(name in str(caught.value) for name in names)


def test_an_item_is_submitted_once_per_annotator_and_round_and_judged_once_per_question():
    study = studies.rating_study()
    first = studies.rate(study, "Ann", "d0", {"alpha": 1})
    create = partial(
        Submission.objects.create, item=first.item, annotator=first.annotator, raw="{}"
    )
    _is_refused(partial(create, round=1), "annotation_submission", "one_submission_per")
    create(round=2)
    assert Submission.objects.of(study).count() == 2
    submission = Submission.objects.filter(pk=first.pk)
    _is_refused(lambda: submission.update(round=0), "rounds_count_from_one")
    judgment = studies.rate(
        studies.rating_study("other"), "Ann", "d0", {"alpha": 1}
    ).judgments.get()
    judgment.pk = None
    _is_refused(lambda: judgment.save(force_insert=True), "annotation_judgment", "one_judgment_per")


def test_names_are_used_once_and_scales_are_ranges():
    study = studies.rated_study()
    item = study.items.get(key="d0")
    blind_key = item.candidates.get(key="alpha").blind_key
    for low, high in ((0, 0), (5, 1)):
        question = Question(study=study, name="other", wording="?", scale_min=low, scale_max=high)
        _is_refused(question.save, "question_scale_is_a_range")
    for row, names in (
        (Study(slug="rated", kind="rating"), ("annotation_study", "slug")),
        (Item(study=study, key="d0"), ("annotation_item", "item_key")),
        (
            Question(study=study, name="appropriateness", wording="?"),
            ("annotation_question", "question_name"),
        ),
        (Annotator(study=study, pseudonym="Ann"), ("annotation_annotator", "pseudonym_once")),
        (Candidate(item=item, key="alpha"), ("annotation_candidate", "candidate_key")),
        (Candidate(item=item, key="x", blind_key=blind_key), ("annotation_candidate", "blind_key")),
    ):
        _is_refused(row.save, *names)


def test_rows_come_in_their_positions_with_blind_keys():
    study = studies.rating_study(n_items=20, questions=("b", "a"))
    assert [item.key for item in study.items.all()] == [f"d{n}" for n in range(20)]
    assert [question.name for question in study.questions.all()] == ["b", "a"]
    keys = Candidate.objects.values_list("blind_key", flat=True)
    assert len(set(keys)) == 40
    assert all(len(key) == 12 and int(key, 16) >= 0 for key in keys)


def test_a_study_is_visible_to_its_owner_and_to_superusers():
    owner, other = User.objects.create_user("owner"), User.objects.create_user("other")
    chief = User.objects.create_superuser("chief")
    owned, unowned = studies.rating_study("owned", owner=owner), studies.rating_study("unowned")
    assert owned.items.count() == unowned.items.count() == 3
    assert list(Study.objects.visible_to(owner)) == [owned]
    assert list(Study.objects.visible_to(other)) == []
    assert set(Study.objects.visible_to(chief)) == {owned, unowned}
    assert list(Study.objects.visible_to(AnonymousUser())) == []


def test_a_study_is_found_by_its_slug_or_reported_with_the_slugs_there_are():
    with refused(StudyUnknown, slug="x", known=[]):
        Study.objects.named("x")
    owner, other = User.objects.create_user("owner"), User.objects.create_user("other")
    styles = studies.rating_study("styles", owner=owner)
    assert Study.objects.named("styles") == styles
    studies.rating_study("dialogues")
    with refused(StudyUnknown, slug="x", known=["dialogues", "styles"]):
        Study.objects.named("x")
    # Never with studies that the user may not see.
    with refused(StudyUnknown, slug="styles", known=[]):
        Study.objects.visible_to(other).named("styles")


def test_counts_do_not_multiply_each_other():
    studies.rated_study("rated", questions=("appropriateness", "style"))
    studies.ticked_study("ticked")
    studies.rating_study("unrated")
    Study.objects.create(slug="empty", kind="rating")
    counts = {
        study.slug: (study.n_items, study.n_submissions, study.n_judgments)
        for study in Study.objects.counted()
    }
    expected = {"rated": (3, 6, 24), "ticked": (2, 2, 5), "unrated": (3, 0, 0), "empty": (0, 0, 0)}
    assert counts == expected


def test_a_question_says_why_a_value_is_none_of_its_own():
    study = studies.rating_study(level="ratio")
    study.questions.update(scale_min=-5)
    for value, code in ((0, ""), (100, ""), (-1, "below_zero"), (101, "off_scale")):
        assert getattr(study.question().validation_error(value), "code", "") == code
    assert study.question().validation_error(float("nan")) is not None


def test_a_person_has_one_pseudonym_in_a_study_and_another_in_the_next():
    one, two = studies.rating_study("one", n_items=0), studies.rating_study("two", n_items=0)
    assert pseudonym(one, "A1") == pseudonym(one, "A1")
    assert re.fullmatch("A[0-9a-f]{10}", pseudonym(one, "A1"))
    names = {pseudonym(study, person) for study in (one, two) for person in ("A1", "A2")}
    assert len(names) == 4
    assert len(one.pseudonym_salt) == len(two.pseudonym_salt) == 32
    assert one.pseudonym_salt != two.pseudonym_salt
    one.pseudonym_salt = "another"
    assert pseudonym(one, "A1") not in names
