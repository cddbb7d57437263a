"""What the check of texts finds, and that it passes what is marked."""

import ast
from gettext import GNUTranslations

import pytest

from config import catalogues, pseudo_locale
from tests.translation.pages import unmarked_words


@pytest.mark.parametrize(
    ("template", "is_unmarked"),
    [
        ("<h1>Studies</h1>", True),
        ("<p>{{ n }} of {{ total }}</p>", True),
        ('<a title="The whole of it">{{ n }}</a>', True),
        ('<img alt="A lamp">', True),
        ('<input placeholder="Reason">', True),
        ('<td data-label="Status"></td>', True),
        ('{{ name|default:"nobody" }}', True),
        ("{% if a %}yes{% endif %}<br>", True),
        ("<p>{% translate 'One' %} and two</p>", True),
        ('<h1 title="{% translate "All" %}">{% translate "Studies" %}</h1>', False),
        ("<p>{% blocktranslate %}{{ n }} of {{ total }}{% endblocktranslate %}</p>", False),
        ('{{ name|default:_("nobody") }}', False),
        ("<p>{{ name }} · {{ n }} <code>manage.py migrate</code> CSV</p>", False),
        ('<dt translate="no">us-east-1</dt>', False),
        ("<script>const a = 'words here';</script>", False),
    ],
)
def test_words_outside_a_tag_are_found_and_data_and_code_are_not(template, is_unmarked):
    assert bool(catalogues.unmarked_in(template)) is is_unmarked


def test_every_text_of_templates_is_marked_and_accented_with_its_tags_whole():
    assert [
        text
        for folder in catalogues.template_folders()
        for text in catalogues.unmarked_texts(folder)
    ] == []
    assert pseudo_locale.accent('To <a href="{{ url }}">%(n)s pages</a> of {total}') == (
        '⟦Tó <a href="{{ url }}">%(n)s págés</a> óf {total}⟧'
    )


@pytest.mark.slow
def test_a_translation_survives_the_next_collection(tmp_path):
    path = tmp_path / "de" / "LC_MESSAGES" / "django.po"
    path.parent.mkdir(parents=True)
    path.write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
        'msgid "Studies"\nmsgstr "Studien"\n\nmsgid "Gone"\nmsgstr "Weg"\n'
    )
    catalogues.write_catalogue(path, catalogues.collected_messages())
    with path.with_suffix(".mo").open("rb") as file:
        translations = GNUTranslations(file)
    assert translations.gettext("Studies") == "Studien"
    assert translations.gettext("Gone") == "Gone"


@pytest.mark.slow
def test_no_text_is_marked_within_an_f_string():
    """Only Python 3.12 and later find it there, so that the catalogue would lack it."""
    inside = [
        f"{path}:{call.lineno}"
        for path in catalogues.sources()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.JoinedStr)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("_", "gettext")
        if call.args and isinstance(call.args[0], ast.Constant)
    ]
    assert inside == []


@pytest.mark.slow
def test_texts_of_templates_code_and_scorers_are_collected():
    messages = catalogues.collected_messages()
    of_file = {location: message.id for message in messages for location, _ in message.locations}
    assert {
        "hits/templates/hits/studies.html",
        "console/registrations.py",
        "hits/templates/hits/review.html",
    } < set(of_file)
    assert "metrics/scorers/registry.py" in of_file
    assert any(isinstance(message.id, tuple) for message in messages)


@pytest.mark.parametrize(
    ("page", "unmarked"),
    [
        ("<p>⟦Sáý⟧ Ann</p>", []),
        ("<p>⟦To the <a>pages</a>⟧ 12 of 3</p>", ["12 of 3"]),
        ("<p>⟦a⟧ Assay CSV 12 s</p>", []),
        ("<p>⟦a⟧</p><p>Annex</p>", ["Annex"]),
        ('<p aria-label="Go on">⟦a⟧</p>', ["Go on"]),
        ("<p>An…</p><code>make run</code>", []),
        ("<option translate='no'>rouge1</option>", []),
    ],
)
def test_what_is_neither_in_brackets_nor_data_is_unmarked(page, unmarked):
    assert unmarked_words(page, ["Ann"]) == unmarked
