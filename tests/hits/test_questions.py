import html
import json
import os
import re
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from annotation.models import Candidate, Item, Question
from annotation.pairs import with_pairs
from annotation.protocols.records import Pairs, ProtocolDocument, ProtocolQuestion
from annotation.protocols.versions import save_draft
from error_codes import InvalidValue
from hits.exceptions import QuestionTooLarge
from hits.questions import MAX_QUESTION_BYTES, html_question, question_of, shown_order, task_page
from tests.annotation.studies import rating_study
from tests.codes import refused, refused_naming
from tests.hits.samples import CONTEXT, alternatives_item, picture_of, rating_item

pytestmark = pytest.mark.django_db
NAMESPACE = (
    "{http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd}"
)


def test_a_question_with_categories_takes_their_indexes_and_a_scale_keeps_its_ends():
    item = rating_item()
    item.study.questions.filter(name="style_strength").update(categories=["no", "some", "much"])
    item.study.questions.filter(position=0).update(scale_min=-1.5, scale_max=5000)
    item = Item.objects.get(pk=item.pk)
    page = task_page(item)
    scale, categories = task_of(page)["questions"]
    assert scale["max"] == 5000
    assert categories == {"name": "style_strength", "kind": "category", "min": 0, "max": 2}
    assert page.count('<input type="radio"') == 12
    assert page.count('<input type="range"') == 4
    with override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="de"):
        assert 'min="-1.5" max="5000"' in task_page(item)


@pytest.mark.parametrize("build", [rating_item, alternatives_item])
def test_the_page_names_no_system_condition_or_key_and_keeps_its_order(build):
    item = build()
    for text in (html_question(item), task_page(item)):
        assert [secret for secret in fields_of(item) if secret.lower() in text.lower()] == []
    before = task_of(task_page(item))["candidates"]
    for candidate in item.candidates.all():
        candidate.position = 100 - candidate.position
        candidate.system = f"another {candidate.system}"
        candidate.save()
    again = Item.objects.get(pk=item.pk)
    assert task_of(task_page(again))["candidates"] == before
    assert sorted(before) == sorted([each.blind_key for each in again.candidates.all()])


def test_a_pair_has_its_left_and_its_right_response_in_every_assignment():
    study = rating_study("paired-study", n_items=4, systems=("alpha", "beta", "gamma"))
    Candidate.objects.filter(item__study=study).update(text="Some text")
    question = ProtocolQuestion("better", "preference", "Which is better?")
    document = with_pairs(ProtocolDocument((question,), title="Compare"), Pairs("all"))
    save_draft(study=study, document=document)
    assert study.items.count() == 12
    for item in study.items.all():
        page = task_page(item)
        sides = [each.blind_key for each in item.candidates.all()]
        assert {tuple(shown_order(task_of(page), f"A{n}")) for n in range(4)} == {tuple(sides)}
        assert not [secret for secret in fields_of(item) if secret in page]


def task_of(page: str) -> dict:
    return json.loads(re.search(r'<script id="task"[^>]*>(.*?)</script>', page, re.DOTALL)[1])


def fields_of(item: Item) -> set[str]:
    hidden = {item.key, item.condition, item.study.slug} - {""}
    for candidate in item.candidates.all():
        hidden |= {candidate.key, candidate.system}
    return hidden


def test_the_page_holds_the_task_for_programs_that_act_as_workers():
    item = rating_item(justification=12)
    page = task_page(item)
    task = task_of(page)
    assert task == {
        "version": 1,
        "item": str(item.pk),
        "kind": "rating",
        "questions": [
            {"name": "appropriateness", "kind": "line", "min": 0, "max": 100},
            {"name": "style_strength", "kind": "line", "min": 0, "max": 100},
        ],
        "candidates": task["candidates"],
        "justification_min_length": 12,
        "reason": {"rule": "page", "least_length": 12},
        "order": {"policy": "random", "seed": 0},
        "consent": None,
    }
    assert len(task["candidates"]) == 4
    assert page.count("<em>") == 1  # the response without a text
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search('<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    assert len(f"{style}{script}".encode()) <= 34 * 1024


def test_the_xml_gives_back_the_page_as_it_was():
    item = rating_item()
    item.context = "An array: a[b[0]]> 1 ]]]>]]> end"
    root = ElementTree.fromstring(html_question(item))
    assert root.tag == f"{NAMESPACE}HTMLQuestion"
    assert root.findtext(f"{NAMESPACE}HTMLContent") == task_page(item)
    assert root.findtext(f"{NAMESPACE}FrameHeight") == "0"
    for page in ("]]>", "a[b[0]]>1", "]]]]>>", "]]><![CDATA[", "<p>plain</p>"):
        assert ElementTree.fromstring(question_of(page)).findtext(f"{NAMESPACE}HTMLContent") == page
    # Characters that XML cannot hold are replaced.
    item.context = "bell \x07, half \ud83d, end\x0b, not a character \uffff, 🙂"
    text = html_question(item)
    assert "bell \ufffd, half \ufffd, end\ufffd, not a character \ufffd, 🙂" in text
    ElementTree.fromstring(text)


def test_a_question_may_fill_the_marketplaces_limit_to_the_byte():
    item = rating_item()
    item.context = "é"
    item.context = "é" + "x" * (MAX_QUESTION_BYTES - len(html_question(item).encode()))
    assert len(html_question(item).encode()) == MAX_QUESTION_BYTES
    item.context += "x"
    with refused_naming(QuestionTooLarge, "'dialogue-17|ironic'", "65,536"):
        html_question(item)


def test_a_conversation_is_shown_turn_by_turn_and_all_texts_are_escaped():
    item = rating_item()
    page = task_page(item)
    turns = re.findall(
        r'<span class="who" dir="auto">(.*?)</span><span class="text" dir="auto">(.*?)</span>', page
    )
    lines = [html.unescape(text).partition(": ")[::2] for text in CONTEXT.splitlines()]
    # Responses have letters as well.
    assert [(f"Speaker {who}", text) for who, text in lines] == [
        (who, html.unescape(text)) for who, text in turns
    ]
    assert "I like trains.\nI like &lt;b&gt;all&lt;/b&gt; trains." in page
    item.context = "A poem:\nof two lines & more"
    assert ">A poem:\nof two lines &amp; more</p>" in task_page(item)
    item.study.title = "<script>alert(1)</script>"
    item.context = '</script><img src=x onerror="alert(1)"> {{ secret }} {% now "Y" %}'
    page = task_page(item)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "{{ secret }} {% now &quot;Y&quot; %}" in page


@override_settings(SITE_URL="https://assay.example")
def test_pictures_that_would_not_fit_are_addresses_all_of_them():
    item = alternatives_item(products=3)
    big = picture_of(os.urandom(50_000), "image/png")
    Candidate.objects.filter(item=item, position=1).update(picture=big)
    item = Item.objects.get(pk=item.pk)
    page = task_page(item)
    assert 'src="data:image' not in page
    assert f'src="https://assay.example/pictures/{big.sha256}"' in page
    assert page.count('src="https://assay.example/pictures/') == 4
    assert len(html_question(item).encode()) < MAX_QUESTION_BYTES
    huge = picture_of(bytes(3_000_000), "image/jpeg")
    Item.objects.filter(pk=item.pk).update(picture=huge)
    assert f"/pictures/{huge.sha256}" in html_question(Item.objects.get(pk=item.pk))


def test_a_page_asks_the_database_as_often_for_many_candidates(django_assert_num_queries):
    item = alternatives_item(products=2)
    with CaptureQueriesContext(connection) as of_few:
        task_page(Item.objects.get(pk=item.pk))
    for number in range(20):
        picture = picture_of(f"<svg>{number}</svg>".encode())
        Candidate.objects.create(item=item, key=f"more {number}", picture=picture)
    with CaptureQueriesContext(connection) as of_many:
        task_page(Item.objects.get(pk=item.pk))
    assert len(of_few) == len(of_many) <= 7
    names = ("study__questions", "study__protocols", "candidates__picture")
    ready = Item.objects.select_related("study", "picture").prefetch_related(*names).get(pk=item.pk)
    with django_assert_num_queries(0):
        html_question(ready)


def test_a_page_of_alternatives_needs_exactly_one_question():
    item = alternatives_item()
    questions = task_of(task_page(item))["questions"]
    assert questions == [{"name": "acceptable", "kind": "selection", "min": 0, "max": 1}]
    Question.objects.create(study=item.study, name="second", wording="And?")
    with refused(InvalidValue, "not_one_question"):
        task_page(Item.objects.get(pk=item.pk))
