"""The page of agreement: its pictures as specification, data and files; its tables."""

import json
import re
from functools import partial

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, Membership, Team, User
from annotation.annotator_pairs import MOST_ANNOTATORS
from annotation.models import (
    AgreementVersion,
    AnnotatorAgreement,
    PairAgreement,
    Protocol,
    StudyMembership,
    Submission,
)
from annotation.protocols.versions import freeze
from console.glossary import ALPHA
from console.results import AGREEMENT, compute
from console.review_desk import desk_facts, queue_of
from tests.annotation.studies import doubt, rate, rated_study, rating_study, ticked_study
from tests.console.filled import add_assignment, add_batch
from tests.console.pages import rows_of, words_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

CHARTS = ["forest", "matrix", "volume", "speed"]


@pytest.fixture
def study(researcher):
    return rated_study(
        owner=researcher, questions=("empathy", "tone"), conditions=("calm", "cross")
    )


@pytest.fixture
def fetch(fetch_picture):
    return partial(fetch_picture, "agreement-picture")


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_a_specification_in_light_or_dark(fetch, study, chart):
    compute(study, AGREEMENT)
    for theme, ground in (("light", "#ffffff"), ("dark", "#14171a"), ("pink", "#ffffff")):
        answer = fetch(study, chart, "json", theme=theme)
        assert answer["Content-Type"] == "application/json"
        spec = json.loads(answer.content)
        assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")
        assert spec["background"] == ground


@pytest.mark.parametrize(
    ("form", "begins"),
    [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("csv", b"label,")],
)
def test_a_chart_is_taken_away_as_a_file(fetch, study, form, begins):
    compute(study, AGREEMENT)
    answer = fetch(study, "forest", form, question="tone")
    assert answer.content.startswith(begins)
    disposition = f'attachment; filename="rated-tone-forest.{form}"'
    assert answer["Content-Disposition"] == disposition


def test_the_data_of_a_chart_are_those_of_the_table(fetch, study):
    compute(study, AGREEMENT)
    rows = rows_of(fetch(study, "forest", "csv"))
    assert [row["label"] for row in rows[:3]] == ["empathy", "empathy, calm", "empathy, cross"]
    alpha = AgreementVersion.objects.get().coefficients.filter(name=ALPHA)[0]
    assert float(rows[0]["value"]) == alpha.value
    [pair] = rows_of(fetch(study, "matrix", "csv", question="tone"))
    assert (pair["annotator_a"], pair["annotator_b"], pair["n_shared"]) == ("Ann", "Bob", "6")
    assert float(pair["value"]) == pytest.approx(1)
    rows = rows_of(fetch(study, "volume", "csv"))
    assert {(row["annotator"], row["n_judgments"], row["seconds"]) for row in rows} == {
        ("Ann", "6", "1.5"),
        ("Bob", "6", "1.5"),
    }


@pytest.mark.parametrize(
    ("chart", "form", "query"),
    [
        ("pie", "json", {}),
        ("forest", "exe", {}),
        ("forest", "json", {"question": "nothing"}),
        ("forest", "json", {"round": "7"}),
        ("forest", "json", {"condition": "nothing"}),
    ],
)
def test_a_chart_that_is_not_there_is_not_found(fetch, study, chart, form, query):
    compute(study, AGREEMENT)
    assert fetch(study, chart, form, **query).status_code == 404


@pytest.mark.parametrize("name", ["annotators", "disagreement"])
def test_what_is_not_computed_yet_is_not_there_yet(rosa, fetch, study, name):
    assert fetch(study, "forest", "json").status_code == 404
    assert rosa.get(reverse(f"console:{name}", args=[study.slug])).status_code == 404


def test_flagged_submissions_are_shown_both_ways(page_text, fetch, study):
    assert "Without flagged" not in page_text(study, "agreement")
    doubt(Submission.objects.first())
    page = page_text(study, "agreement")
    assert "All submissions Without flagged" in page
    assert "1 submission is flagged; it counts until it is rejected." in page
    parts = {row["part"] for row in rows_of(fetch(study, "forest", "csv"))}
    assert parts == {"all submissions", "without flagged ones"}


def test_conditions_and_questions_are_chosen_by_the_address(page_text, study):
    assert "Condition: all calm cross" in page_text(study, "agreement")
    calm = page_text(study, "agreement", condition="calm", question="tone")
    assert "Krippendorff's alpha" in calm
    assert "4 2 8 " in calm
    assert "6 2 12 " in page_text(study, "agreement")


def test_rounds_are_shown_apart_and_against_each_other(page_text, researcher):
    study = rated_study(owner=researcher)
    for item in ("d0", "d1", "d2"):
        rate(study, "Ann", item, {"alpha": 30, "beta": 60}, round=2)
    page = page_text(study, "agreement")
    assert "Round: 1 2" in page
    assert "One round against another" in page
    assert "1 and 2 same annotator Krippendorff's alpha" in page
    assert "undefined: one annotator" in page_text(study, "agreement", round=2)


def test_those_who_judged_most_are_in_the_matrix_and_the_page_says_so(page_text, fetch, researcher):
    study = rating_study(owner=researcher, n_items=1)
    for number in range(MOST_ANNOTATORS + 2):
        rate(study, f"P{number:02}", "d0", {"alpha": number, "beta": 50})
    assert f"The {MOST_ANNOTATORS} who judged most, of {MOST_ANNOTATORS + 2} annotators." in (
        page_text(study, "agreement")
    )
    n_pairs = MOST_ANNOTATORS * (MOST_ANNOTATORS - 1) // 2
    rows = rows_of(fetch(study, "matrix", "csv"))
    assert len(rows) == n_pairs
    assert {row["reason"] for row in rows} == {"too_few"}


def test_annotators_are_sorted_by_the_address(page_text, study):
    compute(study, AGREEMENT)
    page = page_text(study, "annotators", sort="annotator")
    assert page.index("Ann 1.00") < page.index("Bob 1.00")
    page = page_text(study, "annotators", sort="-annotator")
    assert page.index("Bob 1.00") < page.index("Ann 1.00")


def test_annotators_lead_to_their_work_at_the_review_desk(rosa, researcher, study, client):
    study.team = Team.objects.create(slug="own", name="Own")
    Membership.objects.create(team=study.team, user=researcher, role="owner")
    study.save()
    compute(study, AGREEMENT)
    address = reverse("console:annotators", args=[study.slug])
    assert "At the review desk" not in words_of(rosa.get(address).content.decode())
    batch = add_batch(study, n_published=2)
    last = add_assignment(batch.hits.exclude(hit_id="").last(), worker="A1ANN")
    assert last.hit.item.key == "d1"
    last.submission = Submission.objects.get(annotator__pseudonym="Ann", item=last.hit.item)
    last.save()
    content = rosa.get(address).content.decode()
    words = words_of(content)
    assert "Ann A1ANN" in words
    assert "1 waiting" in words
    desk = f"{reverse('console:review', args=[study.slug])}?show=waiting&assignment={last.pk}"
    assert f'href="{desk}"'.replace("&", "&amp;") in content
    assert rosa.get(desk).context["row"].assignment == last
    assert AuditEntry.objects.filter(action="worker.view", details__page="annotators").exists()

    analyst = User.objects.create_user("ana")
    StudyMembership.objects.create(study=study, user=analyst, role="analyst")
    client.force_login(analyst)
    theirs = words_of(client.get(address).content.decode())
    assert "A1ANN" not in theirs
    assert "1 waiting" not in theirs


def test_speed_is_drawn_of_annotators_whose_times_are_known(page_text, study):
    compute(study, AGREEMENT)
    AnnotatorAgreement.objects.filter(annotator="Ann").update(seconds=4)
    assert "Agreement and speed" in page_text(study, "agreement")
    AnnotatorAgreement.objects.update(seconds=None)
    page = page_text(study, "agreement")
    assert "Agreement and speed" not in page
    assert "Agreement and volume" in page


def test_work_that_lies_beyond_the_desks_first_rows_is_opened_by_its_address(study, researcher):
    batch = add_batch(study, n_published=3)
    rows = [add_assignment(hit) for hit in batch.hits.order_by("pk")]
    facts = desk_facts(study, researcher)
    listed = partial(
        queue_of, study, researcher, "waiting", facts=facts, drafts=[], is_named=True,
        rows=slice(2),
    )  # fmt: skip
    first = [row.pk for row in rows[:2]]
    assert [row.assignment.pk for row in listed(opened="")] == first
    assert [row.assignment.pk for row in listed(opened=str(rows[1].pk))] == first
    assert [row.assignment.pk for row in listed(opened=str(rows[2].pk))] == [rows[2].pk, *first]
    assert [row.assignment.pk for row in listed(opened="9" * 40)] == first


def test_what_pulls_agreement_down_is_explained_where_it_is_measured_by_correlation(
    page_text, study, researcher
):
    said = "Whoever orders the candidates as the others do, but rates all of them higher or lower"
    compute(study, AGREEMENT)
    assert said in page_text(study, "annotators")
    ticked = ticked_study("ticked-there", owner=researcher)
    compute(ticked, AGREEMENT)
    assert said not in page_text(ticked, "annotators")


def test_candidates_are_listed_least_agreement_first_with_links(rosa, page_text, study):
    rate(study, "Cyd", "d1", {"alpha": 100, "beta": 50}, question="empathy")
    compute(study, AGREEMENT)
    page = page_text(study, "disagreement")
    assert page.index("d1 alpha") < page.index("d0 alpha")
    assert "1 of 6 candidates" in page_text(study, "disagreement", q="d1 ALPHA")
    assert "No candidate contains “nothing”." in page_text(study, "disagreement", q="nothing")
    where = reverse("console:item", args=[study.slug, study.items.get(key="d1").pk])
    content = rosa.get(reverse("console:disagreement", args=[study.slug])).content.decode()
    assert f'href="{where}"' in content


def test_the_forest_has_one_alpha_a_question_where_candidates_are_ticked(
    page_text, fetch, researcher
):
    study = ticked_study(owner=researcher)
    compute(study, AGREEMENT)
    labels = [row["label"] for row in rows_of(fetch(study, "forest", "csv"))]
    assert labels == [study.questions.get().name]
    assert "Krippendorff's alpha of items (MASI)" in page_text(study, "agreement")


def test_a_chart_is_made_once_for_a_version(rosa, study, django_assert_max_num_queries):
    compute(study, AGREEMENT)
    where = reverse("console:agreement-picture", args=[study.slug, "matrix", "json"])
    first = rosa.get(where)
    with django_assert_max_num_queries(6):  # session, user, study, version, its questions
        again = rosa.get(where, headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = rosa.get(where, {"question": "tone"}, headers={"if-none-match": first["ETag"]})
    assert other.status_code == 200
    rate(study, "Cyd", "d1", {"alpha": 100, "beta": 50})
    study.refresh_from_db()
    compute(study, AGREEMENT)
    newer = rosa.get(where, headers={"if-none-match": first["ETag"]})
    assert newer.status_code == 200
    assert newer["ETag"] != first["ETag"]


def test_every_pair_of_annotators_is_a_row_and_those_who_judged_most_are_marked(researcher):
    study = rating_study(owner=researcher, n_items=1, level="nominal")
    for number in range(MOST_ANNOTATORS + 2):
        rate(study, f"P{number:02}", "d0", {"alpha": number % 3, "beta": number % 2})
    compute(study, AGREEMENT)
    n_all, n_most = MOST_ANNOTATORS + 2, MOST_ANNOTATORS
    assert PairAgreement.objects.filter(is_kappa=True).count() == n_all * (n_all - 1) // 2
    assert PairAgreement.objects.filter(in_matrix=True).count() == n_most * (n_most - 1) // 2


def test_a_version_of_a_former_form_is_computed_anew(page_text, study):
    compute(study, AGREEMENT)
    AgreementVersion.objects.update(fingerprint="")
    assert "Krippendorff's alpha" in page_text(study, "agreement")
    [version] = AgreementVersion.objects.all()
    assert len(version.fingerprint) == 64


def test_the_versions_of_a_protocol_stand_together_under_each_coefficient(researcher, page_text):
    study = rated_study(owner=researcher)
    first = freeze(study=study)
    second = Protocol.objects.create(
        study=study,
        number=2,
        document=first.document,
        fingerprint="2" * 16,
        frozen_at=timezone.now(),
    )
    submissions = Submission.objects.filter(item__study=study)
    submissions.update(protocol=first)
    submissions.exclude(item__key="d0").update(protocol=second)
    compute(study, AGREEMENT)
    words = page_text(study, "agreement").partition("Version by version of the protocol")[2]
    assert re.search(
        r"Krippendorff's alpha 1 [\d.−]+ .*?Krippendorff's alpha 2 [\d.−]+ .*?"
        r"Percent agreement 1 .*?Percent agreement 2",
        words,
    )


def test_where_nothing_was_judged_by_two_a_sentence_stands_for_the_charts(page_text, researcher):
    study = rating_study(owner=researcher, systems=("alpha",))
    for person, item in (("Ann", "d0"), ("Bob", "d1")):
        rate(study, person, item, {"alpha": 40})
    page = page_text(study, "agreement")
    assert "No candidate was judged by two annotators: there is no agreement to compute." in page
    for title in ("Agreement by question", "Every two annotators", "Agreement and volume"):
        assert title not in page
    assert "2 annotators" in page
    rate(study, "Bob", "d0", {"alpha": 50})
    page = page_text(study, "agreement")
    assert "Every two annotators" in page
    assert "No candidate was judged by two" not in page


def test_a_warning_counts_candidates_and_the_items_they_are_of(page_text, researcher):
    study = rating_study(owner=researcher, systems=("alpha", "beta", "gamma"))
    for person, lead in (("Ann", 0), ("Bob", 4), ("Cat", 7)):
        for at, item in enumerate(("d0", "d1", "d2")):
            values = {"alpha": 40 + 9 * at, "beta": 50 + lead * at, "gamma": 60 - lead}
            rate(study, person, item, values)
    page = page_text(study, "agreement")
    assert "only 9 candidates in 3 items have two labels: the interval is a rough guide" in page
