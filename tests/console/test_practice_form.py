"""Practice on the Protocol page: typed into the form, its faults at their fields, its preview."""

import re
from dataclasses import replace

import lxml.html
import pytest
from django.test import Client

from annotation.models import Study
from annotation.protocols.records import Practice, ProtocolDocument
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document, save_draft
from console.practice_form import change_practice
from console.protocol_form import document_of, unread_numbers
from tests.console.test_protocol_page import FORM, address, faults_on, study

__all__ = ["study"]
pytestmark = pytest.mark.django_db
PRACTISED = FORM | {
    "language": "en",
    "practice-n_pages": "2",
    "practice-title": "Practice",
    "practice-reward_usd": "0.07",
    "practice-pass_percent": "75",
    "practice-tolerance_percent": "10",
    "practice-attempts": "",
    "practice-most_workers": "5",
    "p0-item": "",
    "p0-context": "A: Which\r\nfilm?",
    "p0-n_candidates": "3",
    "p0-c0-text": "The other one.",
    "p0-c0-score-fit": "40",
    "p0-c0-feedback-fit": "It answers\r\nwhat was asked.",
    "p0-c1-text": "I like trains.",
    "p0-c1-score-fit": "0",
    "p0-c2-text": " ",
    "p1-item": " d1 ",
    "p1-n_candidates": "2",
    "p1-c0-candidate": "alpha",
    "p1-c0-score-fit": "30",
}


def practice_of(data: dict[str, str]) -> Practice:
    practice = document_of(data, read_protocol("style_ratings")).qualifications.practice
    assert practice is not None
    return practice


def test_practice_is_typed_into_the_form() -> None:
    practice = practice_of(PRACTISED)
    assert (practice.reward_usd, practice.attempts, practice.most_workers) == (0.07, None, 5)
    assert (practice.pass_percent, practice.tolerance_percent) == (75, 10)
    written, stored = practice.items
    assert written.context == "A: Which\nfilm?"
    assert [each.text for each in written.candidates] == ["The other one.", "I like trains."]
    assert written.candidates[0].scores == {"fit": 40}
    assert written.candidates[0].feedback == {"fit": "It answers\nwhat was asked."}
    assert (stored.item, stored.candidates[0].candidate) == ("d1", "alpha")
    assert practice_of(PRACTISED | {"practice-attempts": "1"}).attempts == 1
    # A form without a part for practice leaves it as it was.
    before = document_of(PRACTISED, read_protocol("style_ratings"))
    assert document_of(FORM, before).qualifications.practice == practice


def test_expected_answers_and_feedback_follow_a_renamed_question() -> None:
    practice = practice_of(PRACTISED | {"q0-was": "fit", "q0-name": "fitness"})
    first = practice.items[0].candidates[0]
    assert (first.scores, list(first.feedback)) == ({"fitness": 40}, ["fitness"])


def test_what_is_no_number_is_reported_at_its_field() -> None:
    wrong = {
        "practice-reward_usd": "a dime",
        "practice-most_workers": "all",
        "p0-c0-score-fit": "x",
    }
    assert set(unread_numbers(PRACTISED | wrong)) == set(wrong)


def test_what_is_stored_comes_back_from_the_page_as_it_was(rosa: Client, study: Study) -> None:
    rosa.post(address("protocol-save", study), PRACTISED)
    before = current_document(study)
    page = lxml.html.fromstring(rosa.get(address("protocol", study)).content.decode())
    form = page.get_element_by_id("protocol-form")
    # A browser leaves out the line end that a text begins with.
    typed = {name: text.removeprefix("\n") for name, text in form.form_values()}
    rosa.post(address("protocol-save", study), typed)
    assert current_document(study).qualifications.practice == before.qualifications.practice
    assert page.xpath("//datalist[@id='p1-keys']/option/@value") == ["alpha", "beta"]
    assert page.xpath("//datalist[@id='practice-items']/option/@value")[:2] == ["d0", "d1"]


def test_each_fault_of_practice_stands_at_its_field(rosa: Client, study: Study) -> None:
    wrong = {
        **{"practice-reward_usd": "0.005", "practice-attempts": "3", "p0-c0-score-fot": "3"},
        **{"p0-c1-feedback-fat": "Nobody reads it.", "p1-item": "d99"},
    }
    rosa.post(address("protocol-save", study), PRACTISED | wrong)
    page = rosa.get(address("protocol", study)).content.decode()
    fields = set(re.findall(r'data-field="(p[^"]*)"', page))
    assert fields == {
        *("practice-reward_usd", "practice-attempts", "p0-c0-score-fot", "p0-c1-feedback-fat"),
        "p1-item",
    }
    assert fields <= set(lxml.html.fromstring(page).xpath("//@id"))


def test_buttons_add_and_remove_pages_of_practice_and_practice() -> None:
    document = ProtocolDocument(())
    document, _index = change_practice(document, "add-practice")
    assert document.qualifications.practice is not None
    for _press in range(30):
        document, index = change_practice(document, "add-page-practice")
    assert (len(document.qualifications.practice.items), index) == (20, 0)
    document, index = change_practice(document, "remove-page-practice:19")
    assert (len(document.qualifications.practice.items), index) == (19, 18)
    document, _index = change_practice(document, "remove-practice")
    assert document.qualifications.practice is None


def test_practice_is_begun_on_the_page_and_what_is_missing_said(rosa: Client, study: Study) -> None:
    save = address("protocol-save", study)
    answer = rosa.post(save, FORM | {"action": "add-practice"})
    assert answer.headers["Location"].endswith("?practice=0#practice-0")
    assert "p0-c0-text" in faults_on(rosa.get(answer.headers["Location"]))
    rosa.post(save, PRACTISED | {"action": "remove-page-practice:0"})
    practice = current_document(study).qualifications.practice
    assert practice is not None
    assert [each.item for each in practice.items] == ["d1"]


def test_the_preview_is_the_page_of_practice_once_it_has_no_fault(
    rosa: Client, study: Study
) -> None:
    rosa.post(address("protocol-save", study), PRACTISED)
    preview = address("protocol-preview", study)
    marker = '"practice": {'
    for number, text in (("0", "I like trains."), ("1", "alpha on d1")):
        page = rosa.get(preview, {"practice": number}).content.decode()
        assert text in page
        assert marker in page
    assert marker not in rosa.get(preview, {"practice": "2"}).content.decode()
    rosa.post(address("protocol-save", study), PRACTISED | {"p0-c0-score-fit": "500"})
    assert marker not in rosa.get(preview, {"practice": "0"}).content.decode()
    assert marker in rosa.get(preview, {"practice": "1"}).content.decode()


def test_the_pages_statements_do_not_grow_with_practice(
    rosa: Client, study: Study, django_assert_max_num_queries
) -> None:
    rosa.post(address("protocol-save", study), PRACTISED)
    document = current_document(study)
    practice = document.qualifications.practice
    assert practice is not None
    many = replace(practice, items=practice.items[:1] * 20)
    rules = replace(document.qualifications, practice=many)
    save_draft(study=study, document=replace(document, qualifications=rules))
    with django_assert_max_num_queries(15):
        rosa.get(address("protocol", study))
