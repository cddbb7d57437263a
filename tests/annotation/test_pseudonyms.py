import re

import pytest

from annotation.pseudonyms import pseudonym
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db


def test_a_person_has_one_pseudonym_in_a_study() -> None:
    study = rating_study()
    assert pseudonym(study, "A1WORKER") == pseudonym(study, "A1WORKER")
    assert re.fullmatch("A[0-9a-f]{10}", pseudonym(study, "A1WORKER"))


def test_annotators_and_studies_are_distinguished() -> None:
    one, two = rating_study("one"), rating_study("two")
    names = {pseudonym(study, person) for study in (one, two) for person in ("A1", "A2")}
    assert len(names) == 4


def test_a_pseudonym_needs_the_salt_of_its_study() -> None:
    study = rating_study()
    before = pseudonym(study, "A1WORKER")
    study.pseudonym_salt = "another"
    assert pseudonym(study, "A1WORKER") != before


def test_studies_are_salted_apart() -> None:
    salts = {rating_study(f"s{n}", n_items=0).pseudonym_salt for n in range(5)}
    assert len(salts) == 5
    assert all(len(salt) == 32 for salt in salts)
