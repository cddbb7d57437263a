from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from marketplace.documents.answers import ILLEGAL_IN_XML, NAMESPACE, render_answers


def read(xml):
    answers = ElementTree.fromstring(xml.encode())
    assert answers.tag == f"{{{NAMESPACE}}}QuestionFormAnswers"
    return [tuple(child.text or "" for child in answer) for answer in answers]


def test_fields_become_answers_in_their_order():
    xml = render_answers([("rating", ["4"]), ("reason", ['<b> & "so"']), ("empty", [""])])
    assert read(xml) == [("rating", "4"), ("reason", '<b> & "so"'), ("empty", "")]


def test_several_values_of_a_name_are_joined():
    assert read(render_answers([("chosen", ["a", "c"])])) == [("chosen", "a|c")]


def test_characters_xml_cannot_carry_are_marked():
    xml = render_answers([("a\x00", ["x\x07y\ufffez\ud800"])])
    assert read(xml) == [("a\ufffd", "x\ufffdy\ufffdz\ufffd")]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_every_other_text_comes_back_as_it_was(fields):
    expected = [tuple(ILLEGAL_IN_XML.sub("\ufffd", text) for text in field) for field in fields]
    assert read(render_answers([(name, [value]) for name, value in fields])) == expected
