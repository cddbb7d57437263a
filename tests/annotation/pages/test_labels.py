import csv
import json

import pytest
from django.urls import reverse

from annotation import disputes, models
from tests.annotation.studies import rated_study, rating_study, tick, ticked_study
from tests.codes import codes_on, message_codes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def request_labels(rosa):
    """Fill in the form and read the page one is sent to."""

    def post(study, rule, **form):
        data = {"rule": rule, "round": "1", "with_flagged": "on", "with_adjudications": "on"}
        answer = rosa.post(reverse("console:label", args=[study.slug]), data | form, follow=True)
        assert answer.redirect_chain == [(reverse("console:labels", args=[study.slug]), 302)]
        return answer

    return post


def fetch(browser, study, version, form):
    return browser.get(reverse("console:label-set", args=[study.slug, version, form]))


def test_labels_are_made_and_listed_with_their_rule(request_labels, rosa, researcher):
    study = rated_study(owner=researcher)
    page = request_labels(study, "mean:appropriateness")
    label_set = models.LabelSet.objects.get()
    assert list(page.context["page"]) == [label_set]
    assert (label_set.question.name, label_set.method) == ("appropriateness", "mean")
    assert (label_set.version, label_set.round, label_set.n_labels) == (1, 1, 6)
    assert (label_set.created_by, label_set.with_flagged) == (researcher, True)
    request_labels(study, "mean:appropriateness")
    assert models.LabelSet.objects.count() == 1
    request_labels(study, "median:appropriateness")
    assert models.LabelSet.objects.count() == 2


def test_decisions_are_used_and_counted(request_labels, rosa, researcher):
    study = rated_study(owner=researcher)
    question, candidate = study.questions.get(), study.items.first().candidates.first()
    disputes.decide(candidate=candidate, question=question, value=99, decided_by=researcher)
    request_labels(study, "mean:appropriateness")
    assert models.LabelSet.objects.get().n_adjudicated == 1
    [first, *_] = csv.DictReader(fetch(rosa, study, 1, "csv").getvalue().decode().splitlines())
    assert (first["item"], first["candidate"], float(first["value"])) == ("d0", "alpha", 99)
    data = {"rule": "mean:appropriateness", "round": "1"}
    rosa.post(reverse("console:label", args=[study.slug]), data)
    labels = json.loads(fetch(rosa, study, 2, "json").getvalue())
    assert labels["with_adjudications"] is False
    assert labels["labels"][0]["value"] == 22.5


def test_a_rule_the_question_does_not_allow_makes_nothing_and_says_so(request_labels, researcher):
    study = rated_study(owner=researcher)
    for rule in ("", "majority:appropriateness", "mean:nothing", "<script>:x"):
        assert message_codes(request_labels(study, rule)) == ["no_labels"]
    assert not models.LabelSet.objects.exists()


def test_labels_of_alternatives_become_qrels(request_labels, rosa, researcher):
    study = ticked_study(owner=researcher)
    tick(study, "Bob", "boot", {"clog"})
    page = request_labels(study, "majority:acceptable").content.decode()
    assert f'href="{reverse("console:label-set", args=[study.slug, 1, "txt"])}"' in page
    answer = fetch(rosa, study, 1, "txt")
    assert 'filename="ticked-qrels-1.txt"' in answer["Content-Disposition"]
    assert answer.getvalue().decode().splitlines()[0] == "boot 0 clog 1"


def test_a_rating_study_has_no_qrels_and_says_why(request_labels, rosa, researcher):
    study = rated_study(owner=researcher)
    where = reverse("console:label-set", args=[study.slug, 1, "txt"])
    assert where not in request_labels(study, "mean:appropriateness").content.decode()
    assert message_codes(rosa.get(where, follow=True)) == ["not_graded"]
    for version, form in ((2, "csv"), (1, "xls")):
        assert fetch(rosa, study, version, form).status_code == 404


def test_without_judgments_pages_say_what_is_missing(rosa, researcher):
    rating_study(owner=researcher)
    for name in ("labels", "agreement", "adjudication", "results"):
        page = rosa.get(reverse(f"console:{name}", args=["ratings"])).content.decode()
        assert "nothing_collected" in codes_on(page), name
