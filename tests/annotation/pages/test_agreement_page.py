import json
from functools import partial

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, Membership, Team, User
from annotation import disagreement, flags, models, study_facts
from annotation.protocols.versions import freeze
from annotation.result_kinds.agreement import agreement_records, list_alphas
from annotation.result_kinds.base import find_study_kind
from console.glossary import ALPHA
from hits.pages.desk import desk_facts, queue_of
from results.models import Result
from tests.annotation.preferences import prefer, preferences, turns
from tests.annotation.studies import doubt, rate, rated_study, rating_study, ticked_study
from tests.codes import codes_on
from tests.console import filled, pages

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    return rated_study(
        owner=researcher, questions=("empathy", "tone"), conditions=("calm", "cross")
    )


@pytest.fixture
def fetch(fetch_picture):
    return partial(fetch_picture, "agreement-picture")


def test_a_chart_is_a_specification_in_colors_of_the_page_and_a_file(rosa, fetch, study):
    for name in ("annotators", "disagreement"):
        answer = rosa.get(reverse(f"console:{name}", args=[study.slug]))
        assert answer.headers["Location"] == reverse("console:agreement", args=[study.slug])
    assert fetch(study, "forest", "json").status_code == 404  # not computed yet
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    for chart in ("forest", "matrix", "volume", "speed"):
        answer = fetch(study, chart, "json")
        assert answer["Content-Type"] == "application/json"
        spec = json.loads(answer.content)
        assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")
        assert spec["background"] == "var(--ground)"
    for form, begins in (
        *(("svg", b"<svg"), ("png", b"\x89PNG")),
        *(("pdf", b"%PDF"), ("csv", b"label,")),
    ):
        answer = fetch(study, "forest", form, question="tone")
        assert answer.content.startswith(begins)
        assert answer["Content-Disposition"] == f'attachment; filename="rated-tone-forest.{form}"'
    for chart, form, query in (
        ("pie", "json", {}),
        ("forest", "exe", {}),
        ("forest", "json", {"question": "nothing"}),
        ("forest", "json", {"round": "7"}),
        ("forest", "json", {"condition": "nothing"}),
    ):
        assert fetch(study, chart, form, **query).status_code == 404, (chart, form, query)
    # Its data are those of the table.
    rows = pages.rows_of(fetch(study, "forest", "csv"))
    assert [row["label"] for row in rows[:3]] == ["empathy", "empathy, calm", "empathy, cross"]
    alpha = list_alphas(Result.objects.get())[0]
    assert float(rows[0]["value"]) == alpha.value
    [pair] = pages.rows_of(fetch(study, "matrix", "csv", question="tone"))
    assert (pair["annotator_a"], pair["annotator_b"], pair["n_shared"]) == ("Ann", "Bob", "6")
    assert float(pair["value"]) == pytest.approx(1)
    rows = pages.rows_of(fetch(study, "volume", "csv"))
    expected = {("Ann", "6", "1.5"), ("Bob", "6", "1.5")}
    assert {(row["annotator"], row["n_judgments"], row["seconds"]) for row in rows} == expected


@pytest.fixture
def view_of(rosa):
    """What the page of agreement shows."""

    def view(study, **query):
        answer = rosa.get(reverse("console:agreement", args=[study.slug]), query)
        assert answer.status_code == 200
        return answer.context["view"]

    return view


def test_conditions_questions_and_flags_are_chosen_or_shown_both_ways(view_of, study, fetch):
    assert view_of(study).conditions == ["calm", "cross"]
    for query, counts in (({"condition": "calm", "question": "tone"}, (4, 2, 8)), ({}, (6, 2, 12))):
        alpha = view_of(study, **query).coefficients[0].all
        assert alpha.name == ALPHA
        assert (alpha.n_items, alpha.n_annotators, alpha.n_labels) == counts
    view = view_of(study)
    assert (view.displayed.n_flagged, view.coefficients[0].unflagged) == (0, None)
    doubt(models.Submission.objects.first())
    view = view_of(study)
    assert view.displayed.n_flagged == 1
    assert view.coefficients[0].unflagged is not None
    assert len({row["part"] for row in pages.rows_of(fetch(study, "forest", "csv"))}) == 2


def test_rounds_are_shown_apart_and_against_each_other(view_of, researcher):
    study = rated_study(owner=researcher)
    for item in ("d0", "d1", "d2"):
        rate(study, "Ann", item, {"alpha": 30, "beta": 60}, round=2)
    view = view_of(study)
    assert view.rounds == [1, 2]
    pairs = {(row.earlier, row.later, row.name) for _title, row in view.between_rounds}
    assert (1, 2, ALPHA) in pairs
    assert not view_of(study, round=2).coefficients[0].is_defined


@pytest.mark.slow
def test_those_who_judged_most_are_in_the_matrix_and_every_pair_is_a_row(
    view_of, fetch, researcher
):
    study = rating_study(owner=researcher, n_items=1, level="nominal")
    n_all, n_most = disagreement.MOST_ANNOTATORS + 2, disagreement.MOST_ANNOTATORS
    for number in range(n_all):
        rate(study, f"P{number:02}", "d0", {"alpha": number % 3, "beta": number % 2})
    displayed = view_of(study).displayed
    assert (displayed.n_in_matrix, displayed.n_annotators) == (n_most, n_all)
    assert len(agreement_records(Result.objects.get())["pairs"]) == n_all * (n_all - 1) // 2
    assert len(pages.rows_of(fetch(study, "matrix", "csv"))) == n_most * (n_most - 1) // 2


def test_annotators_are_sorted_and_drawn_by_speed_if_times_are_known(page_text, study, view_of):
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    for sort, first, last in (("annotator", "Ann", "Bob"), ("-annotator", "Bob", "Ann")):
        page = page_text(study, "annotators", sort=sort)
        assert page.index(f"{first} 1.00") < page.index(f"{last} 1.00")
    assert view_of(study).has_times
    models.Judgment.objects.update(seconds=None)
    flags.count_judgments_change(study_ids=[study.pk])
    assert not view_of(study).has_times


@pytest.mark.slow
def test_annotators_lead_to_their_work_at_the_review_desk(rosa, researcher, study, client):
    study.team = Team.objects.create(slug="own", name="Own")
    Membership.objects.create(team=study.team, user=researcher, role="owner")
    study.save()
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    address = reverse("console:annotators", args=[study.slug])
    assert not rosa.get(address).context["has_work"]
    batch = filled.add_batch(study, n_published=2)
    last = filled.add_assignment(batch.hits.exclude(hit_id="").last(), worker="A1ANN")
    assert last.hit.item.key == "d1"
    last.submission = models.Submission.objects.get(annotator__pseudonym="Ann", item=last.hit.item)
    last.save()
    content = rosa.get(address).content.decode()
    assert "Ann A1ANN" in pages.words_of(content)
    desk = f"{reverse('console:review', args=[study.slug])}?show=waiting&assignment={last.pk}"
    assert f'href="{desk}"'.replace("&", "&amp;") in content
    assert rosa.get(desk).context["row"].assignment == last
    assert AuditEntry.objects.filter(action="worker.view", details__page="annotators").exists()
    analyst = User.objects.create_user("ana")
    models.StudyMembership.objects.create(study=study, user=analyst, role="analyst")
    client.force_login(analyst)
    assert "A1ANN" not in pages.words_of(client.get(address).content.decode())
    assert desk.replace("&", "&amp;") not in client.get(address).content.decode()


def test_work_that_lies_beyond_the_desks_first_rows_is_opened_by_its_address(study, researcher):
    batch = filled.add_batch(study, n_published=3)
    rows = [filled.add_assignment(hit) for hit in batch.hits.order_by("pk")]
    facts = desk_facts(study, researcher)
    listed = partial(
        queue_of, study, researcher, "waiting", facts=facts, drafts=[],
        rows=slice(2),
    )  # fmt: skip
    first = [row.pk for row in rows[:2]]
    assert [row.assignment.pk for row in listed(opened="")] == first
    assert [row.assignment.pk for row in listed(opened=str(rows[1].pk))] == first
    assert [row.assignment.pk for row in listed(opened=str(rows[2].pk))] == [rows[2].pk, *first]
    assert [row.assignment.pk for row in listed(opened="9" * 40)] == first


def test_alternatives_have_one_alpha_and_scales_a_correlation(view_of, study, researcher, fetch):
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    assert view_of(study).is_correlation
    study = ticked_study(owner=researcher)
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    assert not view_of(study).is_correlation
    labels = [row["label"] for row in pages.rows_of(fetch(study, "forest", "csv"))]
    assert labels == [study.questions.get().name]
    assert "krippendorff_alpha_masi" in {row.all.name for row in view_of(study).coefficients}


def test_candidates_are_listed_least_agreement_first_with_links(rosa, study):
    rate(study, "Cyd", "d1", {"alpha": 100, "beta": 50}, question="empathy")
    find_study_kind(study_facts.AGREEMENT).compute_now(study)

    def candidates(**query):
        page = rosa.get(reverse("console:disagreement", args=[study.slug]), query).context["page"]
        return [(row.candidate.item.key, row.candidate.key) for row in page]

    listed = candidates()
    assert len(listed) == 6
    assert listed.index(("d1", "alpha")) < listed.index(("d0", "alpha"))
    assert candidates(q="d1 ALPHA") == [("d1", "alpha")]
    assert candidates(q="nothing") == []
    where = reverse("console:item", args=[study.slug, study.items.get(key="d1").pk])
    content = rosa.get(reverse("console:disagreement", args=[study.slug])).content.decode()
    assert f'href="{where}"' in content


@pytest.mark.slow
def test_the_versions_of_a_protocol_stand_together_under_each_coefficient(researcher, view_of):
    study = rated_study(owner=researcher)
    first = freeze(study=study)
    again = {"number": 2, "fingerprint": "2" * 16, "frozen_at": timezone.now()}
    second = models.Protocol.objects.create(study=study, document=first.document, **again)
    submissions = models.Submission.objects.filter(item__study=study)
    submissions.update(protocol=first)
    submissions.exclude(item__key="d0").update(protocol=second)
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    rows = [(row.name, row.protocol) for _title, row in view_of(study).by_protocol]
    names = [name for name, _protocol in rows]
    assert rows[:2] == [(ALPHA, 1), (ALPHA, 2)]
    assert [protocol for _name, protocol in rows] == [1, 2] * (len(rows) // 2)
    assert names[::2] == names[1::2]


@pytest.mark.slow
def test_where_nothing_was_judged_by_two_a_sentence_replaces_the_charts(rosa, researcher):
    study = rating_study(owner=researcher, systems=("alpha",))
    for person, item in (("Ann", "d0"), ("Bob", "d1")):
        rate(study, person, item, {"alpha": 40})

    def page():
        answer = rosa.get(reverse("console:agreement", args=[study.slug]))
        pictures = reverse("console:agreement-picture", args=[study.slug, "matrix", "json"])
        content = answer.content.decode()
        return "no_agreement" in codes_on(content), pictures in content, answer.context["view"]

    is_empty, has_charts, view = page()
    assert (is_empty, has_charts, view.displayed.n_annotators) == (True, False, 2)
    rate(study, "Bob", "d0", {"alpha": 50})
    assert page()[:2] == (False, True)


def test_position_effects_are_on_the_pages_and_in_the_api(rosa, researcher):
    study = preferences()
    models.Study.objects.filter(pk=study.pk).update(owner=researcher)
    for person in ("Ann", "Bob"):
        prefer(study, person, [(first, "alpha") for first in turns(10)])
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    every, ann, bob = rosa.get(reverse("console:api:position-effects", args=[study.slug])).json()
    assert [every["annotator"], ann["annotator"], bob["annotator"]] == ["", "Ann", "Bob"]
    assert (every["question"], every["n_pages"], every["value"]) == ("better", 20, 0)
    assert every["ci_low"] < 0 < every["ci_high"]
    page = rosa.get(reverse("console:agreement", args=[study.slug])).content.decode()
    assert "position_effect" in codes_on(page)
    page = rosa.get(reverse("console:annotators", args=[study.slug]))
    assert page.context["rows"][0][2]["n_pages"] == 10
    uploaded = rated_study("uploaded", owner=researcher)
    find_study_kind(study_facts.AGREEMENT).compute_now(uploaded)
    page = rosa.get(reverse("console:agreement", args=[uploaded.slug])).content.decode()
    assert "position_effect" not in codes_on(page)
