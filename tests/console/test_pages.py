import re
from dataclasses import dataclass
from itertools import product
from math import nan

import pytest
from django.urls import resolve, reverse
from django.utils import timezone

from accounts import models, roles
from accounts.teams import create_team, set_role
from annotation.access import give_to_team, set_study_role
from annotation.models import Item, Study, Submission
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT
from console.glossary import CODE_NAMES
from console.templatetags.numbers import change, coefficient, duration, interval, words
from hits.models import Appeal, Assignment, Batch, Hit
from hits.pages.studies import MOST_FOUND
from hits.progress import StudyProgress, progress_counts, unreadable_assignments
from metrics.stored_scores import write_scores
from results.models import Result
from tests.annotation.studies import doubt, rate, rated_study, rating_study, ticked_study
from tests.codes import message_codes
from tests.console.filled import add_assignment, add_batch, add_scores, scored_study
from validation.documents.metrics_answers import measure_name

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

PAGES = [
    *("study", "items", "launch", "answers", "agreement", "annotators", "disagreement"),
    *("results", "search", "adjudication", "labels", "validation", "downloads"),
]
HOSTILE = """<script>alert('1')</script>"&<b>"""


@pytest.fixture
def page(rosa):
    """The context of a page of a study; its HTML is `html`."""

    def get_context(study, name="study", **query):
        answer = rosa.get(reverse(f"console:{name}", args=[study.slug]), query)
        assert answer.status_code == 200
        answer.context.html = answer.content.decode()
        return answer.context

    return get_context


def needs(page):
    """The pages to which the overview sends for what must be decided."""
    return [resolve(one.url.partition("?")[0]).url_name for one in page["decisions"]]


def values(page):
    """The overview's figures by the page they are from; of several the last."""
    return {resolve(one.url).url_name: one.value for one in page["figures"]}


def panels(page):
    return {one.panel.name: one for one in page["panels"]}


def stage(page, name):
    return next(one for one in page["stages"] if one.name == name)


def correlations(page):
    return {(row.metric, row.signature): row.first for row in page["view"].correlations}


def item_url(study, key):
    return reverse("console:item", args=[study.slug, study.items.get(key=key).pk])


def test_studies_are_listed_with_their_sizes_sorted_and_filtered(rosa, researcher):
    assert rosa.get("/").content.decode().count(f'href="{reverse("console:new-study")}') > 1
    ticked_study("few", title="Few items", owner=researcher)
    rated_study("many", title="Many items", owner=researcher)

    def rows(**query):
        studies = [row["study"] for row in rosa.get("/", query).context["rows"]]
        return [(study.slug, study.n_items) for study in studies]

    few, many = ("few", 2), ("many", 3)
    assert rows() == [many, few]
    assert rows(sort="n_items") == [few, many]
    assert rows(q="MANY") == [many]
    assert rows(q="nothing") == []
    # A character that no text has.
    assert rosa.get(reverse("console:items", args=["many"]) + "?q=%00d0").status_code == 200
    assert rosa.get("/?q=%00mine").status_code == 200


def test_a_study_leads_to_what_fills_it_and_then_to_its_launch(page, researcher):
    study = rating_study(owner=researcher)
    collect, score = (reverse(f"console:{one}", args=[study.slug]) for one in ("collect", "score"))
    shown = page(study)
    assert (needs(shown), shown["progress"].n_items_without_hit) == (["launch"], 3)
    assert page(study, "launch")["team_form"]
    assert f'action="{collect}"' not in page(study, "answers").html
    assert f'action="{score}"' in page(study, "validation").html
    study = rating_study("empty", n_items=0, questions=(), owner=researcher)
    assert needs(page(study)) == ["items"]
    for name, target in [("items", "add-items"), ("launch", "items"), ("answers", "launch")]:
        shown = page(study, name)
        assert f'href="{reverse(f"console:{target}", args=[study.slug])}"' in shown.html
    for name in ("agreement", "validation"):
        shown = page(study, name)
        assert (shown.get("view"), '="empty"' in shown.html) == (None, True)
    assert "validation.json" not in page(study, "downloads").html


def test_a_published_study_shows_how_far_it_is_and_which_items_have_no_hit(page, researcher):
    study = rated_study(owner=researcher)
    batch = add_batch(study, n_published=2)
    for hit in batch.hits.all()[:2]:
        add_assignment(hit)
    overview, answers = page(study), page(study, "answers")
    for shown in (overview, answers):
        progress = shown["progress"]
        assert (progress.n_published, progress.n_hits) == (2, 3)
        assert (progress.n_collected, progress.n_offered) == (2, 6)
    assert values(overview)["answers"] == "2"
    assert "launch" in needs(overview)
    assert f'action="{reverse("console:collect", args=[study.slug])}"' in answers.html
    assert "Judge rated" in page(study, "launch").html
    study = rating_study(owner=researcher)
    batch = add_batch(study, n_published=3)
    assert "launch" not in needs(page(study))
    late = Item.objects.create(study=study, key="late", position=3)
    shown = page(study)
    assert "launch" in needs(shown)
    assert stage(shown, "launch").state == "active"
    assert re.findall(r"\d+", stage(shown, "launch").detail) == ["3", "3", "1"]
    Item.objects.create(study=study, key="later", position=4)
    assert page(study)["progress"].n_items_without_hit == 2
    Item.objects.get(key="later").delete()
    Hit.objects.create(batch=batch, item=late, hit_id="3LATE")
    assert "launch" not in needs(page(study))


def test_submissions_that_wait_and_unreadable_answers_are_counted(page, researcher):
    study = rating_study(owner=researcher)
    [first, second, _] = add_batch(study, n_published=3).hits.all()
    assert "review" not in needs(page(study))
    for n, hit in enumerate((first, second), 1):
        add_assignment(hit)
        shown = page(study)
        [message] = [one.message for one in shown["decisions"] if "/review/" in one.url]
        assert re.findall(r"[\d:-]+", message) == [str(n), "2026-03-05", "12:00"]
    Assignment.objects.filter(hit=first).update(decision="approve")
    Assignment.objects.filter(hit=second).update(status="Approved")
    assert "review" not in needs(page(study))
    study = rating_study("unread", owner=researcher, n_items=1)
    hit = add_batch(study).hits.get()
    add_assignment(hit)
    assert "answers" not in needs(page(study))
    for number in range(51):
        add_assignment(hit, f"A{number}", problem="It is empty.")
    shown = page(study)
    assert "answers" in needs(shown)
    assert re.findall(r"\d+", stage(shown, "answers").detail) == ["51"]
    assert page(study, "answers")["page"].paginator.count == 51
    assert page(study, "answers").html.count("It is empty.") == 50
    assert page(study, "answers", page=2).html.count("It is empty.") == 1


def test_the_stages_say_how_it_stands_and_agreement_comes_before_scores(page, researcher):
    study = rated_study(owner=researcher)
    batch = add_batch(study, n_published=2)
    add_assignment(batch.hits.first(), problem="The answer names no candidate.")
    states = {one.name: one.state for one in page(study)["stages"]}
    expected = {"items": "done", "launch": "active", "answers": "needs-you"}
    expected |= {"agreement": "active", "validation": "later"}
    assert expected.items() <= states.items()
    page(study, "agreement")
    assert stage(page(study), "agreement").state == "done"
    unjudged = rating_study("unjudged", owner=researcher)
    add_scores(unjudged)
    assert stage(page(unjudged), "validation").state == "later"
    study = rated_study("agreed", owner=researcher)
    rows = {row.all.name: row for row in page(study, "agreement")["view"].coefficients}
    alpha = rows["krippendorff_alpha"].all
    assert 0.9 <= alpha.value < 1
    assert (alpha.n_items, alpha.n_annotators, alpha.n_labels) == (6, 2, 12)
    assert alpha.ci_method == "jackknife-t-clusters"
    assert str(CODE_NAMES[alpha.ci_method]) in page(study, "agreement").html
    assert alpha.ci_method not in page(study, "agreement").html
    assert rows["icc2"].term.meaning
    assert page(study, "validation").get("view") is None
    shown = page(study)
    # Three items are too few for an interval.
    assert panels(shown)["agreement"].state == "few"
    assert "agreement" not in values(shown)
    assert "validation" in needs(shown)


def test_the_overview_and_the_metrics_page_show_the_same_best_metric(rosa, page, researcher):
    study = scored_study(owner=researcher)
    by_item = page(study, "validation")["view"]
    [row] = by_item.correlations
    assert (by_item.level, row.metric, row.question) == ("item", "nll", "appropriateness")
    for cell in row.cells[:3]:
        assert (cell.value, cell.ci_high) == pytest.approx((1, 1))
        assert (cell.n_used, cell.n_groups) == (3, 3)
        assert cell.ci_low < 0  # three items say little
    for level in ("system", "pooled"):
        assert page(study, "validation", level=level)["view"].level == level
    for query in ({"level": "nonsense"}, {"condition": "nonsense"}):
        assert rosa.get(reverse("console:validation", args=["scored"]), query).status_code == 404
    best = page(study, "validation")["view"].best
    [first] = best.best_records
    assert best.results.label(first) == "nll"
    view = panels(page(study))["metrics"].view
    assert (view["chart"].title, view["answer"].code) == ("appropriateness", best.answer.code)
    assert measure_name(first) == view["measure"]
    # Three items say too little for an interval.
    assert [(row.label, row.span) for row in view["chart"].rows] == [("nll", None)]


def test_correlations_are_those_of_a_level_a_condition_and_a_signature(page, researcher):
    study = scored_study(owner=researcher, metrics=("nll", "bleu"))
    values = {("d0", "alpha"): 0.0, ("d0", "beta"): -1.0}
    write_scores(study=study, metric="nll", signature="nll|v:2", values=values)
    shown = page(study, "validation")
    rows = correlations(shown)
    assert {key: row.value for key, row in rows.items()} == pytest.approx(
        {("nll", "nll|v:1"): 1, ("nll", "nll|v:2"): -1, ("bleu", "bleu|v:1"): 1}
    )
    shared = {row.signature for row in shown["view"].correlations if row.shares_its_metric}
    assert shared == {"nll|v:1", "nll|v:2"}
    partial = rows["nll", "nll|v:2"]
    assert (partial.n_used, partial.n_groups, partial.n_missing) == (1, 3, 4)
    study = scored_study("calm", owner=researcher, conditions=("calm", "angry & loud"))
    assert set(page(study, "validation")["view"].results.conditions) == {"calm", "angry & loud"}
    [row] = correlations(page(study, "validation", condition="angry & loud")).values()
    assert (row.n_used, row.n_groups) == (1, 1)


@pytest.mark.slow
def test_undefined_numbers_are_no_nan_on_a_page(page, researcher):
    study = rating_study(owner=researcher, systems=("alpha",), n_items=2, level="nominal")
    for person, item in product(("Ann", "Bob"), ("d0", "d1")):
        rate(study, person, item, {"alpha": 1})
    add_scores(study)
    rows = page(study, "agreement")["view"].coefficients
    assert {row.all.reason for row in rows if row.all.name == "krippendorff_alpha"} == {
        "single_category"
    }
    for name in ("study", "agreement", "validation"):
        assert not re.search(r"\bnan\b", page(study, name).html.lower())


def test_alternatives_with_scores_have_correlations(page, researcher):
    study = ticked_study(owner=researcher)
    shown = page(study, "validation")
    assert (shown.get("view"), 'class="empty"' in shown.html) == (None, True)
    assert reverse("console:score", args=[study.slug]) not in shown.html
    add_scores(study, "cosine")
    [row] = correlations(page(study, "validation")).values()
    assert row.value is not None
    [row] = correlations(page(study, "validation", level="system")).values()
    assert row.reason == "too_few"
    tables = page(study, "downloads")["tables"]
    files = {base: [form for _name, form, *_rest in rows] for base, rows in tables}
    assert files["validation"] == ["json"]
    assert files["qrels"] == ["csv", "jsonl", "parquet", "txt"]


def test_items_that_are_there_are_sorted_filtered_and_paged_by_address(rosa, researcher, page):
    study, other = rated_study(owner=researcher), rated_study("other", owner=researcher)
    theirs = reverse("console:item", args=[study.slug, other.items.first().pk])
    for where in (reverse("console:study", args=["none"]), theirs, "/studies/nothing/"):
        answer = rosa.get(where)
        assert answer.status_code == 404
        assert 'href="/"' in answer.content.decode()
    study = rating_study(owner=researcher, n_items=60)
    rate(study, "Ann", "d7", {"alpha": 1})

    def keys(**query):
        return [item.key for item in page(study, "items", **query)["page"]]

    assert keys() == keys(sort="password") == [f"d{number}" for number in range(50)]
    assert page(study, "items")["page"].n_rows == 60
    assert keys(after=study.items.get(key="d49").pk)[0] == "d50"
    assert keys(q="Context 41") == ["d41"]
    assert keys(sort="-n_submissions")[0] == "d7"
    assert keys(q="nothing") == []


@pytest.mark.slow
def test_what_people_wrote_is_shown_as_text(rosa, researcher, signed_in):
    study = scored_study(owner=researcher, title=HOSTILE, conditions=("calm", HOSTILE))
    batch = add_batch(study)
    batch.title = HOSTILE
    batch.save()
    add_assignment(batch.hits.first(), problem=HOSTILE)
    study.questions.update(name=HOSTILE, level="nominal")
    study.annotators.filter(pseudonym="Ann").update(pseudonym=HOSTILE)
    study.scoring_runs.update(metric=HOSTILE, signature=HOSTILE)
    find_study_kind("agreement").compute_now(study)
    for name, query in [*((name, {}) for name in PAGES), ("validation", {"condition": HOSTILE})]:
        page = rosa.get(reverse(f"console:{name}", args=["scored"]), query)
        assert page.status_code == 200
        content = page.content.decode()
        assert "&lt;script&gt;" in content
        assert "<script>" not in content
        assert "<b>" not in content
    assert "<script>" not in rosa.get("/").content.decode()
    name = "<b>eve</b>"
    content = signed_in(models.User.objects.create(username=name)).get("/").content.decode()
    assert "&lt;b&gt;eve&lt;/b&gt;" in content
    assert name not in content


def test_an_item_shows_everyones_judgments_which_can_be_flagged(rosa, researcher):
    study = rated_study(owner=researcher)
    study.items.get(key="d0").submissions.update(justification="It fits.")
    answer = rosa.get(item_url(study, "d0"))
    [table] = answer.context["questions"]
    assert [one.pseudonym for one in table["annotators"]] == ["Ann", "Bob"]
    row = table["rows"][0]
    assert (row["candidate"].key, row["values"], row["mean"]) == ("alpha", ["20", "25"], 22.5)
    content = answer.content.decode()
    assert "It fits." in content
    assert ('rel="next"' in content, 'rel="prev"' in content) == (True, False)
    [table] = rosa.get(item_url(ticked_study(owner=researcher), "boot")).context["questions"]
    assert {row["candidate"].key: row["values"] for row in table["rows"]}["clog"] == ["yes"]
    theirs = rated_study("other").items.first().submissions.first()
    for slug in ("rated", "other"):
        where = reverse("console:flag", args=[slug, theirs.pk])
        assert rosa.post(where, {"reason": "fast"}).status_code == 404
    assert not Submission.objects.flagged().exists()
    submission = study.items.get(key="d0").submissions.get(annotator__pseudonym="Bob")
    where = reverse("console:flag", args=["rated", submission.pk])
    unflag = reverse("console:unflag", args=["rated", submission.pk])
    for reason, code in (("", "not_flagged"), ("x" * 201, "not_flagged"), ("fast", "flagged")):
        answer = rosa.post(where, {"reason": reason}, follow=True)
        assert message_codes(answer) == [code]
        assert (unflag in answer.content.decode()) == (code == "flagged")
        assert list(Submission.objects.flagged()) == [submission] * (code == "flagged")
    doubt(*study.items.get(key="d0").submissions.all())
    assert rosa.post(unflag, follow=True).content.decode().count("/unflag/") == 1
    [left] = Submission.objects.flagged()
    assert left.annotator.pseudonym == "Ann"


@pytest.fixture
def lab_study(researcher):
    study = rated_study("mine", owner=researcher)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    return study


@pytest.fixture
def batch(lab_study):
    batch = add_batch(lab_study, n_published=2, max_assignments=2)
    Batch.objects.update(publishing_started_at=timezone.now())
    return batch


def rejected_assignment(hit, worker="A1WORKER"):
    assignment = add_assignment(hit, worker)
    submission = rate(hit.batch.study, worker, hit.item.key, {"alpha": 1, "beta": 2}, round=2)
    Assignment.objects.filter(pk=assignment.pk).update(
        status=Assignment.Status.REJECTED, submission=submission
    )
    return assignment


def decisions(browser):
    """What the overview asks for, by the page where it is decided."""
    answer = browser.get(reverse("console:study", args=["mine"]))
    return {one.url: one for one in answer.context["decisions"]}


APPEALS = "/studies/mine/review/?show=rejected"


def test_open_appeals_lead_who_may_decide_to_the_rejected_work(rosa, lab_study, batch, signed_in):
    rejected = rejected_assignment(Hit.objects.of(batch).first())
    Appeal.objects.create(assignment=rejected, reason="I read it all.", appealed_at=timezone.now())
    carla = models.User.objects.create_user("carla")
    set_role(team=lab_study.team, user=carla, role=roles.Role.ANALYST, actor=None)
    repost = reverse("console:batch-change", args=["mine", batch.pk, "repost"])
    assert not {APPEALS, repost} & {*decisions(signed_in(carla))}
    assert decisions(rosa)[APPEALS].tone == "error"
    where = reverse("console:batch", args=["mine", batch.pk])
    assert rosa.get(where).content.decode().count(APPEALS) == 1
    Appeal.objects.update(answer="We did.")
    assert APPEALS not in decisions(rosa)
    assert APPEALS in rosa.get(where).content.decode()


def test_rejections_appeals_and_disputes_lead_to_where_they_are_decided(rosa, lab_study, batch):
    find_study_kind(AGREEMENT).compute_now(lab_study)
    Result.objects.filter(kind=AGREEMENT).update(facts={"first_round": 1, "n_disputed": 2})
    message = decisions(rosa)[reverse("console:adjudication", args=["mine"])].message
    assert re.findall(r"\d+", message) == ["2"]
    hit = Hit.objects.of(batch).first()
    rejected_assignment(hit)
    repost = reverse("console:batch-change", args=["mine", batch.pk, "repost"])
    for expires_at in (None, timezone.now()):  # expired work is not counted
        Batch.objects.update(expires_at=expires_at)
        message = decisions(rosa)[repost].message
        assert re.findall(r"\d+", message) == ["1", str(batch.pk)]
        assert expires_at or rosa.get(repost).status_code == 200
    Batch.objects.update(closed_at=timezone.now())
    assert repost not in decisions(rosa)
    Batch.objects.update(closed_at=None, expires_at=None)
    Hit.objects.filter(pk=hit.pk).update(max_assignments=3)  # it is offered again
    assert repost not in decisions(rosa)


@pytest.fixture
def searched(researcher):
    study = rated_study(owner=researcher)
    add_assignment(add_batch(study).hits.first(), "A1WANDA")
    return study


@pytest.fixture
def find(rosa, searched):
    def search(words, browser=rosa):
        answer = browser.get(reverse("console:search", args=[searched.slug]), {"q": words})
        assert answer.status_code == 200
        return answer

    return search


def guest(study, role, signed_in):
    user = models.User.objects.create_user(role)
    set_study_role(study=study, user=user, role=role, actor=None)
    return signed_in(user)


def found(answer):
    """How many rows of each kind were found, without the kinds of which none were."""
    names = ("items", "candidates", "systems", "annotators", "workers")
    matches = {name: answer.context.get(name) for name in names}
    return {name: len(one["rows"]) for name, one in matches.items() if one and one["rows"]}


def test_what_is_found_is_of_the_study_and_bounded(find, searched, researcher):
    for sought, kind, shown, n in [
        ("context 1", "items", "Context 1", None),
        ("ALPHA on d0", "candidates", "d0 / alpha", None),
        ("beta", "systems", "beta", 3),
        ("ann", "annotators", "Ann", 3),
        ("wanda", "workers", "A1WANDA", 1),
    ]:
        answer = find(sought)
        assert kind in found(answer), sought
        assert shown in answer.content.decode()
        if n is not None:
            row = answer.context[kind]["rows"][0]
            assert (row["n"] if isinstance(row, dict) else row.n) == n
    assert found(find("zebra")) == {}
    assert not find("a").context["is_long_enough"]
    other = rated_study("other", owner=researcher)
    Item.objects.filter(study=other).update(context="Elsewhere only")
    assert found(find("elsewhere")) == {}
    Item.objects.bulk_create(
        Item(study=searched, key=f"plenty{at}", position=10 + at) for at in range(MOST_FOUND + 1)
    )
    answer = find("plenty")
    assert found(answer) == {"items": MOST_FOUND}
    assert answer.context["items"]["has_more"]
    assert f"{reverse('console:items', args=[searched.slug])}?q=plenty" in answer.content.decode()


def test_who_may_not_see_systems_or_workers_finds_none(find, searched, signed_in):
    searched.items.first().candidates.update(text="The same words.")
    adjudicator = guest(searched, roles.Role.ADJUDICATOR, signed_in)
    assert "systems" not in found(find("beta", adjudicator))
    answer = find("same words", adjudicator)
    assert found(answer) == {"candidates": 2}
    assert "alpha" not in answer.content.decode()
    for role in (roles.Role.ANALYST, roles.Role.AUDITOR):
        assert found(find("wanda", guest(searched, role, signed_in))) == {}


def progress_numbers(study):
    progress = StudyProgress(**Study.objects.filter(pk=study.pk).values(**progress_counts()).get())
    return (
        progress.n_hits,
        progress.n_published,
        progress.n_offered,
        progress.n_collected,
        progress.n_unreadable,
    )


def test_progress_counts_hits_offers_answers_and_unreadable_answers():
    study, other = rating_study(), rating_study("other")
    add_assignment(add_batch(other).hits.first(), problem="It is empty.")
    assert progress_numbers(study) == (0, 0, 0, 0, 0)
    add_batch(study, n_published=0)  # unpublished HITs want no assignments
    assert progress_numbers(study) == (3, 0, 0, 0, 0)
    first = add_batch(study, n_published=3, max_assignments=2, round=2)
    second = add_batch(study, n_published=1, max_assignments=5, round=3)
    for worker in ("A1", "A2"):
        add_assignment(first.hits.first(), worker)
    add_assignment(second.hits.first(), "A1")
    assert progress_numbers(study) == (9, 4, 3 * 2 + 5, 3, 0)
    assignment = add_assignment(second.hits.first(), "A2", problem="It is empty.")
    assert progress_numbers(study) == (9, 4, 11, 4, 1)
    assert list(unreadable_assignments(study)) == [assignment]


# Numbers.


@dataclass
class Interval:
    ci_low: float | None
    ci_high: float | None


@pytest.mark.parametrize(
    ("value", "text", "changed"),
    [
        (0.344, "0.34", "+0.344"),
        (0.0123, "0.01", "+0.012"),
        (-0.5, "−0.50", "−0.500"),
        (-0.001, "0.00", "−0.001"),
        (1, "1.00", "+1.000"),
        (nan, "–", "–"),
        (None, "–", "–"),
    ],
)
def test_numbers_are_rounded_and_a_change_has_its_sign(value, text, changed):
    assert (coefficient(value), change(value)) == (text, changed)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Interval(-0.1, 0.25), "[−0.10, 0.25]"),
        (Interval(nan, nan), ""),
        (Interval(None, None), ""),
        (object(), ""),
        ({"ci_low": 0.1, "ci_high": 0.2}, "[0.10, 0.20]"),
        ({"ci_low": None, "ci_high": None}, ""),
    ],
)
def test_an_interval_is_written_where_there_is_one(estimate, text):
    assert interval(estimate) == text


@pytest.mark.parametrize("code", ["no_pairable_units", "jackknife-t-clusters"])
def test_codes_are_written_as_words(code):
    assert words(code) == str(CODE_NAMES[code]) != code


@pytest.mark.parametrize(
    ("seconds", "numbers"),
    [(160, ["2", "40"]), (9.6, ["10"]), (7260, ["2", "1"]), (None, []), (nan, [])],
)
def test_durations_are_written_in_the_units_that_people_use(seconds, numbers):
    assert re.findall(r"\d+", duration(seconds)) == numbers
