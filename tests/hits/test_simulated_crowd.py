"""Simulated annotators answer every kind of page as a careful person might."""

import json

import pytest

from annotation.models import Item, Picture
from annotation.models.uploads import OF_POOLS
from annotation.protocols.documents import read_document
from annotation.protocols.templates import read_protocol, template_names
from hits.answers import Answer, read_answer
from hits.crowd.faults import FaultyAnswers
from hits.crowd.simulated import (
    REASONS_OF_PRODUCTS,
    REASONS_OF_RESPONSES,
    SimulatedAnswers,
)
from tests.annotation.studies import alternatives_study, rating_study
from tests.hits.test_answers import xml_of
from tests.hits.test_answers_by_kind import EVERY_KIND, item_of, values_of
from tests.hits.test_crowd import task_of

pytestmark = pytest.mark.django_db
N_WORKERS = 12


def answers_to(item: Item, faults: dict[str, str] | None = None) -> list[Answer]:
    source = FaultyAnswers(SimulatedAnswers(item.study, seed=3), faults or {}, seed=3)
    given = [source.answer(f"w{number}", task_of(item)) for number in range(N_WORKERS)]
    return [read_answer(xml_of({"answer": json.dumps(each)}), item) for each in given]


@pytest.fixture
def item() -> Item:
    study = rating_study(n_items=1, systems=("a", "b", "c"), questions=())
    study.items.get().candidates.filter(key="b").update(text=study.items.get().reference)
    return item_of(study, read_document(EVERY_KIND))


def test_every_kind_of_question_is_answered_as_its_page_allows(item: Item) -> None:
    answers = answers_to(item)
    names = {each.question.name for answer in answers for each in answer.judgments}
    assert names == set(item.study.questions.values_list("name", flat=True))
    # Comparisons go by how good the candidates are.
    best = item.candidates.get(key="b").key
    for question in ("best", "ends", "order"):
        places = [values_of(answer, question)[best] for answer in answers]
        assert sum(places) / len(places) > 0.7
    # What depends on an answer is written only where it is asked.
    for answer in answers:
        low = {key for key, value in values_of(answer, "fit").items() if value < 20}
        explained = {each.candidate.key for each in answer.written if each.question == "why"}
        assert explained == low


def test_words_fit_what_is_judged_responses_or_products(item: Item) -> None:
    texts = [each.text for answer in answers_to(item) for each in answer.written]
    assert texts
    assert all(text.startswith(tuple(one[:20] for one in REASONS_OF_RESPONSES)) for text in texts)
    assert SimulatedAnswers(alternatives_study(), seed=3).reasons == REASONS_OF_PRODUCTS
    picture = Picture.objects.create(sha256="0" * 64, media_type="image/png", content=b"x")
    item.candidates.filter(key="b").update(picture=picture)
    assert SimulatedAnswers(item.study, seed=3).reasons == REASONS_OF_PRODUCTS


@pytest.mark.parametrize("name", template_names())
@pytest.mark.parametrize("fault", ["", "random", "straight_line", "copy_paste", "machine_like"])
def test_the_templates_are_answered_with_consent_and_reasons_by_good_and_bad(name, fault):
    pool = name in OF_POOLS
    systems = ("a", "b")
    study = alternatives_study() if pool else rating_study(systems=systems, questions=())
    item = item_of(study, read_protocol(name))
    faults = {f"w{number}": fault for number in range(N_WORKERS)} if fault else {}
    answers = answers_to(item, faults)
    assert all(answer.judgments for answer in answers)
    assert any(answer.pasted for answer in answers) == (
        name == "alternatives" and fault == "copy_paste"
    )
