"""The page of reasons: the terms that they mention, and the reasons themselves."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Submission, WrittenAnswer
from tests.annotation.studies import alternatives_study, rated_study, tick, ticked_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    study = ticked_study(owner=researcher)
    Submission.objects.filter(item__key="boot").update(justification="Same heel and colour")
    Submission.objects.filter(item__key="gown").update(justification="Another colour")
    submission = Submission.objects.get(item__key="boot")
    for docno, text in (("clog", "striped as well"), ("flat", "<b>too</b> flat")):
        candidate = submission.item.candidates.get(key=docno)
        WrittenAnswer.objects.create(
            submission=submission, candidate=candidate, question="reason", text=text
        )
    return study


@pytest.fixture
def page(rosa, study):
    def read(**query):
        return rosa.get(reverse("console:reasons", args=[study.slug]), query)

    return read


def test_terms_are_counted_and_reasons_stand_beside_what_they_are_about(page):
    view = page().context["view"]
    assert (view.counts["n_relevant"], view.counts["n_other"]) == (2, 2)
    rows = {row["term"]: row for row in view.counts["terms"]}
    assert (rows["colour"]["share_relevant"], rows["colour"]["share_other"]) == (0.5, 0.5)
    of_pages = [len(one.relevant or ()) for one in view.reasons if not one.docno]
    assert sorted(of_pages) == [0, 2]
    assert {one.docno for one in view.reasons if one.docno} == {"clog", "flat"}
    content = page().content.decode()
    assert ">price<" not in content  # nobody mentions it
    assert content.count('class="said-of"') == 4
    assert "&lt;b&gt;too&lt;/b&gt; flat" in content


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        ({"term": "colour"}, ["Same heel and colour", "Another colour"]),
        ({"about": "other"}, ["&lt;b&gt;too&lt;/b&gt; flat", "Another colour"]),
        ({"term": "colour", "about": "relevant"}, ["Same heel and colour"]),
        ({"q": "STRIPED"}, ["striped as well"]),
        ({"q": "velvet"}, []),
        ({"term": "nothing", "round": "9"}, [
            "Same heel and colour", "striped as well", "&lt;b&gt;too&lt;/b&gt; flat",
            "Another colour",
        ]),
    ],
)  # fmt: skip
def test_the_address_chooses_reasons(page, query, reasons):
    content = page(**query).content.decode()
    cells = [part.partition("</td>")[0] for part in content.split('class="said-of">')[1:]]
    assert cells == reasons


def test_labels_of_alternatives_lead_to_reasons_and_studies_without_any_say_so(
    rosa, study, researcher
):
    rated = rated_study("rated", owner=researcher)
    for one, has_link in ((study, True), (rated, False)):
        page = rosa.get(reverse("console:labels", args=[one.slug])).content.decode()
        assert (reverse("console:reasons", args=[one.slug]) in page) is has_link
    bare = alternatives_study("bare", owner=researcher)
    for one in (bare, rated, ticked_study("silent", owner=researcher)):
        answer = rosa.get(reverse("console:reasons", args=[one.slug]))
        assert answer.context["view"] is None
        assert 'class="empty"' in answer.content.decode()


def test_more_reasons_cost_no_more_statements(rosa, researcher):
    counts = []
    for n in (2, 40):
        pools = {f"t{k}": ("a", "b") for k in range(n)}
        study = alternatives_study(f"of-{n}", pools=pools, owner=researcher)
        for topic in pools:
            tick(study, "Ann", topic, {"a"})
        Submission.objects.of(study).update(justification="the same heel")
        address = reverse("console:reasons", args=[study.slug])
        rosa.get(address)
        with CaptureQueriesContext(connection) as queries:
            rosa.get(address)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 15
