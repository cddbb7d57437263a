"""Label sets on a page: made in the background, listed, taken away, used for qrels."""

import csv
import io
import json

import pytest
from django.urls import reverse

from annotation.adjudications import decide
from annotation.models import LabelSet
from tests.annotation.studies import rated_study, rating_study, tick, ticked_study
from tests.console.pages import words_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def request_labels(rosa):
    """Fill in the form and read the page one is sent to."""

    def post(study, rule, **form):
        data = {"rule": rule, "round": "1", "with_flagged": "on", "with_adjudications": "on"}
        where = reverse("console:label", args=[study.slug])
        answer = rosa.post(where, data | form, follow=True)
        assert answer.redirect_chain == [(reverse("console:labels", args=[study.slug]), 302)]
        return words_of(answer.content.decode())

    return post


def fetch(browser, study, version, form):
    return browser.get(reverse("console:label-set", args=[study.slug, version, form]))


def test_labels_are_made_and_listed_with_their_rule(request_labels, rosa, researcher):
    study = rated_study(owner=researcher)
    page = request_labels(study, "mean:appropriateness")
    assert "Labelling appropriateness, mean: done" in page
    assert "Labels 1 of appropriateness, by mean." in page
    assert "1 appropriateness mean 1 counted 6 0 –" in page
    label_set = LabelSet.objects.get()
    assert (label_set.created_by, label_set.with_flagged) == (researcher, True)


def test_the_same_rule_on_the_same_judgments_is_the_same_set(request_labels, researcher):
    study = rated_study(owner=researcher)
    request_labels(study, "mean:appropriateness")
    assert "They were made of the same before." in request_labels(study, "mean:appropriateness")
    request_labels(study, "median:appropriateness")
    assert LabelSet.objects.count() == 2


def test_decisions_are_used_and_counted(request_labels, rosa, researcher):
    study = rated_study(owner=researcher)
    question, candidate = study.questions.get(), study.items.first().candidates.first()
    decide(candidate=candidate, question=question, value=99, decided_by=researcher)
    assert "1 appropriateness mean 1 counted 6 1 –" in request_labels(study, "mean:appropriateness")
    [first, *_] = csv.DictReader(io.StringIO(fetch(rosa, study, 1, "csv").getvalue().decode()))
    assert (first["item"], first["candidate"], float(first["value"])) == ("d0", "alpha", 99)
    data = {"rule": "mean:appropriateness", "round": "1"}
    rosa.post(reverse("console:label", args=[study.slug]), data)
    labels = json.loads(fetch(rosa, study, 2, "json").getvalue())
    assert labels["with_adjudications"] is False
    assert labels["labels"][0]["value"] == 22.5


@pytest.mark.parametrize("rule", ["", "majority:appropriateness", "mean:nothing", "<script>:x"])
def test_a_rule_the_question_does_not_allow_makes_nothing_and_says_so(
    request_labels, researcher, rule
):
    page = request_labels(rated_study(owner=researcher), rule)
    assert "No labels were made: choose a question and a method it allows." in page
    assert not LabelSet.objects.exists()


def test_labels_of_alternatives_become_qrels(request_labels, rosa, researcher):
    study = ticked_study(owner=researcher)
    tick(study, "Bob", "boot", {"clog"})
    assert "CSV JSON JSONL Parquet qrels" in request_labels(study, "majority:acceptable")
    answer = fetch(rosa, study, 1, "txt")
    assert 'filename="ticked-qrels-1.txt"' in answer["Content-Disposition"]
    assert answer.getvalue().decode().splitlines()[0] == "boot 0 clog 1"


def test_a_rating_study_has_no_qrels_and_says_why(request_labels, rosa, researcher):
    study = rated_study(owner=researcher)
    assert "qrels" not in request_labels(study, "mean:appropriateness")
    where = reverse("console:label-set", args=[study.slug, 1, "txt"])
    assert "qrels are made of alternatives" in rosa.get(where, follow=True).content.decode()


@pytest.mark.parametrize(("version", "form"), [(2, "csv"), (1, "xls")])
def test_a_set_or_form_that_is_not_there_is_not_found(
    request_labels, rosa, researcher, version, form
):
    study = rated_study(owner=researcher)
    request_labels(study, "mean:appropriateness")
    assert fetch(rosa, study, version, form).status_code == 404


def test_without_judgments_the_page_says_what_is_missing(rosa, researcher):
    rating_study(owner=researcher)
    page = rosa.get(reverse("console:labels", args=["ratings"])).content.decode()
    assert "Labels can be made once answers are collected." in words_of(page)
