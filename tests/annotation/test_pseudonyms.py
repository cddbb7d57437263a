import re

import pytest

from annotation.pseudonyms import pseudonym
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db


def test_a_person_has_one_pseudonym_in_a_study_and_another_in_the_next() -> None:
    one, two = rating_study("one", n_items=0), rating_study("two", n_items=0)
    assert pseudonym(one, "A1") == pseudonym(one, "A1")
    assert re.fullmatch("A[0-9a-f]{10}", pseudonym(one, "A1"))
    names = {pseudonym(study, person) for study in (one, two) for person in ("A1", "A2")}
    assert len(names) == 4
    assert len(one.pseudonym_salt) == len(two.pseudonym_salt) == 32
    assert one.pseudonym_salt != two.pseudonym_salt
    one.pseudonym_salt = "another"
    assert pseudonym(one, "A1") not in names
