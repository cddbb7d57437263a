"""Reading QuestionForms."""

import pytest

from marketplace.documents.question_forms import parse_question_form, validate_question_form
from marketplace.documents.questions import parse_question
from marketplace.exceptions import InvalidQuestion, NotOffered
from tests.codes import refused
from tests.marketplace.forms import FULL_FORM, form, free_text, question, selection

QUESTION = question("q", free_text())


def with_content(content):
    """A question with this to read, see or hear."""
    return question("q", free_text(), content=content)


def binary(kind, url):
    mime = f"<MimeType><Type>{kind}</Type></MimeType>"
    return with_content(f"<Binary>{mime}<DataURL>{url}</DataURL></Binary>")


MOST_TWO = "<MaxSelectionCount>2</MaxSelectionCount>"
LEAST_TWO = "<MinSelectionCount>2</MinSelectionCount>"


def test_a_form_is_its_overviews_and_questions_in_order():
    parts = parse_question_form(FULL_FORM).parts
    assert [part.kind for part in parts[0].content] == [
        "title", "text", "list", "media", "formatted",
    ]  # fmt: skip
    assert [part.identifier for part in parts[1:]] == [
        "style", "colours", "room", "shop", "price", "reason", "code",
    ]  # fmt: skip


@pytest.mark.parametrize("date", ["2005-10-01", "2017-11-06"])
def test_both_schemas_are_read(date):
    xml = form(QUESTION).replace("2017-11-06", date)
    assert parse_question_form(xml).questions[0].identifier == "q"
    assert parse_question(xml, allow_http=False).kind == "form"


def test_another_schema_is_refused():
    for xml in (
        form(QUESTION).replace("2017-11-06", "2099-01-01"),
        form(QUESTION.replace("<Question>", '<Question xmlns="urn:x">')),
    ):
        with refused(InvalidQuestion, "wrong_namespace"):
            validate_question_form(xml)


def test_pictures_keep_their_words():
    picture = parse_question_form(FULL_FORM).parts[0].content[3].media
    assert (picture.kind, picture.url) == ("image", "https://pictures.example/lamp.png")
    assert picture.alternative == "A brass lamp"


def test_embedded_files_have_a_size_on_the_page():
    embedded = """<EmbeddedBinary><EmbeddedMimeType><Type>video</Type><SubType>mp4</SubType>
    </EmbeddedMimeType><DataURL>https://h/film.mp4</DataURL><AltText>A film</AltText>
    <Width>320</Width><Height>200</Height></EmbeddedBinary>"""
    xml = form(with_content(embedded))
    media = parse_question_form(xml).questions[0].content[0].media
    assert (media.kind, media.width, media.height) == ("video", 320, 200)


@pytest.mark.parametrize(
    ("dangerous", "left"),
    [
        ("<p onclick='x()'>a</p>", "<p>a</p>"),
        ("a<script>alert(1)</script>b", "ab"),
        ("<style>p{}</style>", ""),
        ("<iframe src='https://x'></iframe>", ""),
        ("<form action='/'><input name='csrf'></form>", ""),
        ("<svg onload='x()'></svg>", ""),
        ("<p style='position:fixed' class='primary' id='main'>a</p>", "<p>a</p>"),
    ],
)
def test_formatted_content_is_made_safe(dangerous, left):
    content = f"<FormattedContent><![CDATA[{dangerous}]]></FormattedContent>"
    xml = form(with_content(content))
    assert parse_question_form(xml).questions[0].content[0].html == left


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "/worker/logout/"])
def test_links_and_pictures_lead_elsewhere_or_nowhere(url):
    content = (
        f'<FormattedContent><![CDATA[<a href="{url}">x</a><img src="{url}">]]></FormattedContent>'
    )
    xml = form(with_content(content))
    html = parse_question_form(xml).questions[0].content[0].html
    assert "href" not in html
    assert "src" not in html
    link = content.replace(url, "https://x.example")
    html = parse_question_form(form(with_content(link))).questions[0].content
    assert 'rel="noopener noreferrer"' in html[0].html


@pytest.mark.parametrize(
    ("style", "counts", "control"),
    [
        ("", "", "radio"),
        ("radiobutton", "", "radio"),
        ("dropdown", "", "dropdown"),
        ("combobox", "", "dropdown"),
        ("list", "", "list"),
        ("checkbox", "", "checkbox"),
        ("multichooser", "", "checkbox"),
        ("list", MOST_TWO, "checkbox"),
        ("checkbox", "<MaxSelectionCount>1</MaxSelectionCount>", "radio"),
    ],
)
def test_a_suggested_style_becomes_a_control_that_everybody_can_use(style, counts, control):
    xml = form(question("q", selection("a", "b", style=style, counts=counts)))
    assert parse_question_form(xml).questions[0].selection.control == control


def test_a_choice_may_be_a_picture():
    picture = """<Binary><MimeType><Type>image</Type></MimeType><DataURL>https://h/a.png</DataURL>
    <AltText>A chair</AltText></Binary>"""
    xml = form(question("q", selection("a", "b").replace("<Text>Choice a</Text>", picture)))
    option = parse_question_form(xml).questions[0].selection.options[0]
    assert (option.content.kind, option.text) == ("media", "A chair")


def test_other_may_stand_among_the_selections_or_after_them():
    other = "<OtherSelection/>"
    within = form(question("q", selection("a", other=other)))
    after = within.replace(f"{other}</Selections>", f"</Selections>{other}")
    assert within != after
    for xml in (within, after):
        assert parse_question_form(xml).questions[0].selection.other is not None


WRONG = [
    ("", "no_question", ""),
    ("<Surprise/>", "unexpected_element", "Surprise"),
    (QUESTION + QUESTION, "repeated_identifier", "QuestionIdentifier"),
    (QUESTION.replace("true", "maybe"), "not_a_boolean", "maybe"),
    (
        QUESTION.replace("<FreeTextAnswer></FreeTextAnswer>", ""),
        "missing_element",
        "FreeTextAnswer",
    ),
    (QUESTION.replace("<Question>", "<Question><Hint>x</Hint>"), "unexpected_element", "Hint"),
    (question("q", free_text("<Length minLength='9' maxLength='3'/>")), "impossible_length", ""),
    (question("q", free_text("<Length maxLength='x'/>")), "not_a_whole_number", "maxLength"),
    (question("q", free_text("<IsNumeric minValue='low'/>")), "not_a_number", "minValue"),
    (question("q", free_text("<AnswerFormatRegex regex='('/>")), "invalid_regex", ""),
    (question("q", free_text("<AnswerFormatRegex/>")), "missing_regex", ""),
    (question("q", selection()), "invalid_selection", ""),
    (question("q", selection("a", "a")), "repeated_identifier", "SelectionIdentifier"),
    (question("q", selection("a", style="wheel")), "invalid_selection", "StyleSuggestion"),
    (question("q", selection("a", counts=MOST_TWO)), "impossible_count", "2"),
    (question("q", selection("a", counts=LEAST_TWO)), "impossible_count", "2"),
    (with_content("<Blink>x</Blink>"), "unexpected_element", "Blink"),
    (with_content("<Text>a<b/></Text>"), "markup_in_text", "Text"),
    (binary("model", "https://h/x"), "unknown_media_type", "model"),
    (binary("image", "javascript:x"), "invalid_address", "DataURL"),
    (binary("image", "https://[::1"), "invalid_address", "DataURL"),
    (question("q", free_text(f"<AnswerFormatRegex regex='{'(' * 5000}'/>")), "invalid_regex", ""),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "code", "named"), WRONG)
def test_what_is_no_form_is_refused_with_a_reason(parts, code, named):
    with refused(InvalidQuestion, code) as caught:
        validate_question_form(form(parts))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "part",
    [
        question("q", "<FileUploadAnswer/>"),
        with_content("<Application><Flash/></Application>"),
    ],
)
def test_files_and_applets_are_refused_when_the_hit_is_made(part):
    with pytest.raises(NotOffered):
        validate_question_form(form(part))


def test_entities_are_refused():
    bomb = '<!DOCTYPE q [<!ENTITY a "aaaa">]>' + form(with_content("<Text>&a;</Text>"))
    with refused(InvalidQuestion, "declares_entities"):
        validate_question_form(bomb)


def test_a_form_is_bounded():
    with refused(InvalidQuestion, "too_long"):
        validate_question_form(form(QUESTION, f"<Overview><Text>{'x' * 65_535}</Text></Overview>"))
