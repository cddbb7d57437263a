"""Protocols to begin with: one name wherever they are offered, and what each is for."""

import pytest
from django.urls import reverse

from annotation.protocols.templates import template_names
from console.protocol_templates import TEMPLATES, purpose_of, title_of
from tests.annotation.studies import rating_study, ticked_study
from tests.console.pages import words_of

pytestmark = pytest.mark.django_db


def test_every_template_has_a_title_and_a_purpose():
    assert set(TEMPLATES) == set(template_names())
    assert len({title_of(name) for name in TEMPLATES}) == len(TEMPLATES)


def test_pages_offer_a_template_by_one_name_and_say_what_it_is_for(rosa, researcher):
    rating_study("rated", owner=researcher)
    ticked_study("ticked", owner=researcher)
    of_studies = "".join(
        rosa.get(reverse("console:protocol", args=[slug])).content.decode()
        for slug in ("rated", "ticked")
    )
    for page in (of_studies, rosa.get(reverse("console:new-study")).content.decode()):
        for name in TEMPLATES:
            assert f'<option value="{name}">{title_of(name)}'.replace("'", "&#x27;") in page
            assert purpose_of(name) in words_of(page)
