"""How templates read dictionaries, whose keys may be any word."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import Context, Template

TEMPLATES = Path(settings.BASE_DIR) / "templates"
# `items` and `keys` of a dictionary are looked up as keys first; `pairs` is there instead.
METHOD = re.compile(r"\b[\w.]+\.(?:items|keys|values)\b(?=[^{}]*[%}]\})")
# Attributes of objects: of a form's list, a participant, a practice row, and a row of a table.
ATTRIBUTES = {
    "content.items",
    "participant.items",
    "row.keys",
    "row.values",
    "view.form.keys",
    "one.items",
}


def test_no_template_calls_a_method_of_a_dictionary():
    calls = {
        (path.relative_to(TEMPLATES).as_posix(), found[0])
        for path in TEMPLATES.rglob("*.*")
        if path.suffix != ".js"
        for found in METHOD.finditer(path.read_text(encoding="utf-8"))
    }
    assert {call for _path, call in calls} == ATTRIBUTES, calls


LOOP = "{% for name, value in given|pairs %}{{ name }}={{ value }} {% empty %}none{% endfor %}"


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ({"given": {"items": 40, "keys": 1}}, "items=40 keys=1 "),
        ({"given": {}}, "none"),
        ({}, "none"),
    ],
)
def test_pairs_are_read_whatever_the_keys_are(context, text):
    assert Template(LOOP).render(Context(context)) == text
