import json
import re
from csv import DictReader
from html import unescape
from io import StringIO
from urllib.parse import unquote

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from annotation.models import Upload, UploadPart
from retrieval.exceptions import TrecFileFaults
from retrieval.pages.sizes import MOST_BYTES, QUESTIONS, answer_of
from tests.codes import field_codes
from tests.console.pages import words_of
from tests.retrieval.test_power import power as command

pytestmark = pytest.mark.django_db

PUBLISHED = {"ask": "correlation", "rho": "-0.281", "power": "0.9", "alpha": "0.05"}
PUBLISHED |= {"method": "cohen"}


def words(client, status=200, **query):
    answer = client.get(reverse("console:how-many"), query)
    assert answer.status_code == status
    return words_of(answer.content.decode())


def test_the_published_correlation_needs_129_and_rounding_is_named(rosa):
    page = words(rosa, **PUBLISHED)
    for number in ("129", "−0.281", "0.9019", "128", "0.8997", "134"):
        assert re.search(rf"(?<![\d.]){number}(?![\d.]*\d)", page), number
    assert "0.8997" not in words(rosa, **PUBLISHED | {"rho": "-0.423"})


def test_every_question_has_an_answer_before_anything_is_filled_in(rosa):
    for name, question in QUESTIONS.items():
        initial = {key: field.initial for key, field in question.form.base_fields.items()}
        assert f"{answer_of(question.form(initial)).size.n:,}" in words(rosa, ask=name)


@pytest.mark.parametrize(
    ("ask", "form", "options"),
    [
        ("correlation", PUBLISHED | {"method": "spearman", "one_sided": "on"},
         "--correlation -0.281 --power .9 --method spearman --one-sided"),
        ("kappa", {"kappa": "0.87", "width": "0.12", "prevalence": "0.17", "confidence": "0.9",
                   "per_target": "14", "icc": "0.1"},
         "--kappa 0.87 --width 0.12 --prevalence 0.17 --alpha .1 --per-target 14 "
         "--icc-of-target .1"),
        ("difference", {"difference": "0.05", "sd": "0.2", "systems": "2", "power": "0.8",
                        "alpha": "0.05"}, "--difference .05 --sd .2"),
        ("difference", {"difference": "0.1", "sd": "0.25", "systems": "10", "power": "0.8",
                        "alpha": "0.05"}, "--difference .1 --sd .25 --systems 10"),
        ("metrics", {"first": "0.5", "second": "0.4", "between": "0.6", "power": "0.8",
                     "alpha": "0.05"},
         "--correlation .5 --other-correlation .4 --between .6"),
        ("width", {"width": "0.1", "sd": "0.25", "confidence": "0.95"}, "--width .1 --sd .25"),
    ],
)  # fmt: skip
def test_page_and_command_answer_the_same(rosa, ask, form, options):
    expected = command(*options.split())
    assert expected.pop("reading") == []
    assert answer_of(QUESTIONS[ask].form(form)).size.record() == expected
    assert words(rosa, **form | {"ask": ask}).count(f"{expected['n']:,} ") >= 1


@pytest.mark.parametrize("ask", QUESTIONS)
def test_the_curve_goes_through_the_answer_and_meets_what_was_asked_for(rosa, ask):
    address = reverse("console:how-many-curve", args=["csv"])
    rows = list(DictReader(StringIO(rosa.get(address, {"ask": ask}).content.decode())))
    initial = {name: field.initial for name, field in QUESTIONS[ask].form.base_fields.items()}
    answer = answer_of(QUESTIONS[ask].form(initial))
    of, wanted = answer.form.of, answer.form.wanted
    values = sorted((float(row["n"]), float(row[of])) for row in rows)
    enough = [value for n, value in values if n >= answer.size.n]
    few = [value for n, value in values if n < answer.size.n - 1]
    if of == "power":
        assert values == sorted(values, key=lambda row: row[1])
        assert min(enough) >= wanted > max(few)
    else:
        assert values == sorted(values, key=lambda row: -row[1])
        assert max(enough) <= wanted * 1.0001
        assert min(few) >= wanted * 0.9999


def test_the_curve_comes_as_a_picture_with_both_marks(rosa):
    answer = rosa.get(reverse("console:how-many-curve", args=["json"]), PUBLISHED)
    layers = json.loads(answer.content)["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["rule", "line", "point"]
    svg = rosa.get(reverse("console:how-many-curve", args=["svg"]), PUBLISHED)
    assert svg["Content-Type"] == "image/svg+xml"
    assert svg.content.startswith(b"<svg")
    assert rosa.get(reverse("console:how-many"), {"ask": "luck"}).status_code == 404


def test_what_has_no_answer_is_refused_at_its_field(rosa):
    for more in ({"rho": ""}, {"rho": "2"}, {"rho": "0"}, {"power": "1"}):
        form = PUBLISHED | more
        answer = rosa.get(reverse("console:how-many"), form)
        assert answer.status_code == 422
        assert list(answer.context["form"].errors) == list(more)
        assert rosa.get(reverse("console:how-many-curve", args=["json"]), form).status_code == 404


PILOT_FORM = {"budget": "300", "topic_cost": "2", "confidence": "0.9"}


def pilot_text(*, shape=(7, 20, 3), seed=1):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.1, shape)
    for axis in range(len(shape)):
        values += rng.normal(0, 0.1, [n if axis == at else 1 for at, n in enumerate(shape)])
    names = ("system", "topic", "assessor")[: len(shape)]
    rows = [
        ",".join([*(f"{name[0]}{n}" for name, n in zip(names, at, strict=True)), str(value)])
        for at, value in np.ndenumerate(values)
    ]
    return "\n".join([",".join([*names, "value"]), *rows, ""])


def asked_of(client, text, *, name="pilot.csv", **more):
    content = text if isinstance(text, bytes) else text.encode()
    form = PILOT_FORM | more | {"file": SimpleUploadedFile(name, content)}
    return client.post(reverse("console:how-many-pilot"), form)


def downloaded(answer):
    page = answer.content.decode()
    (address,) = re.findall(r'href="data:application/json;charset=utf-8,([^"]+)"', page)
    return json.loads(unquote(unescape(address)))


@pytest.mark.parametrize("shape", [(7, 20, 3), (5, 9)])
def test_page_and_command_plan_the_same_of_a_pilot(rosa, tmp_path, shape):
    path, text = tmp_path / "pilot.csv", pilot_text(shape=shape)
    path.write_text(text)
    expected = command(
        *("--pilot", str(path), "--budget", "300", "--topic-cost", "2", "--alpha", ".1")
    )
    [reading] = expected.pop("reading")
    assert reading["n_used"] == text.count("\n") - 1
    answer = asked_of(rosa, text)
    assert answer.status_code == 200
    assert downloaded(answer) == expected
    page, best = words_of(answer.content.decode()), expected["best"]
    phi = best["dependability"]
    assert f"(Φ {phi['value']:.3f}, " in page.replace("⟦", "")
    assert page.count(f"[{phi['ci_low']:.3f}, {phi['ci_high']:.3f}]") > 1
    assert f" {best['n_topics']} " in page
    for plan in expected["plans"]:
        one = plan["dependability"]
        row = f"{plan['n_topics']} {plan['n_assessors']} {one['value']:.3f} "
        assert f"{row}[{one['ci_low']:.3f}, {one['ci_high']:.3f}]" in page


@pytest.mark.parametrize(
    "text",
    [
        "",
        "system,topic\na,1\n",
        "system,topic,value\na,1,x\nb,1,2\nb,2,nan\n,2,1\nb,1,3\n",
        "system,topic,value\na,1,1\nb,2,2\n",
        "system,topic,value\na,1,1e308\nb,1,-1e308\n",
        "system,topic,value\n" + "a,1,x\n" * 30,
        b"system,topic,value\na,1,\xff\n",
    ],
)
def test_a_pilot_is_refused_by_line_as_the_command_refuses_it(rosa, tmp_path, text):
    path = tmp_path / "pilot.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises((TrecFileFaults, CommandError)) as refused:
        command("--pilot", str(path), "--budget", "300")
    answer = asked_of(rosa, text)
    assert answer.status_code == 422
    page = words_of(answer.content.decode())
    faults = str(refused.value).splitlines()[:-1]
    assert faults
    for fault in faults:
        assert fault in page


def test_a_pilot_without_an_answer_is_refused_with_the_reason(rosa):
    without_error = "system,topic,value\na,1,.1\na,2,.3\nb,1,.1\nb,2,.3\n"
    for text, more, codes in (
        ("x" * (MOST_BYTES + 1), {}, {"file": ["too_large"]}),
        (pilot_text(), {"budget": "3"}, {"__all__": ["no_answer"]}),
        (pilot_text(), {"budget": "0"}, {"__all__": ["no_answer"]}),
        (pilot_text(), {"budget": "nan"}, {"budget": ["invalid"]}),
        (pilot_text(), {"budget": "1e300"}, {"budget": ["max_value"]}),
        (pilot_text(), {"topic_cost": "-1"}, {"topic_cost": ["min_value"]}),
        (pilot_text(), {"confidence": "1"}, {"__all__": ["no_answer"]}),
        (pilot_text(shape=(1, 9)), {}, {"__all__": ["no_answer"]}),
        (without_error, {}, {"__all__": ["no_answer"]}),
    ):
        answer = asked_of(rosa, text, **more)
        assert answer.status_code == 422
        assert field_codes(answer.context["form"]) == codes


def test_a_pilot_is_not_kept_and_takes_a_token_of_the_form(rosa, researcher):
    before = dict(rosa.session)
    assert asked_of(rosa, pilot_text()).status_code == 200
    assert not Upload.objects.exists()
    assert not UploadPart.objects.exists()
    assert dict(rosa.session) == before
    assert rosa.get(reverse("console:how-many-pilot")).context["answer"] is None
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(researcher)
    assert asked_of(strict, pilot_text()).status_code == 403


def test_what_is_named_in_a_pilot_is_shown_as_text(rosa):
    answer = asked_of(rosa, "system,topic,value\na,1,<script>alert(1)</script>\n", name="<b>.csv")
    assert "<script>alert" not in answer.content.decode()
    assert "&lt;b&gt;.csv" in answer.content.decode()
