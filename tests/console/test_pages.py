import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from annotation.access import set_study_role
from annotation.models import Candidate, Item, Question, Study, Submission
from console.results import compute
from hits.models import Assignment, Hit
from metrics.stored_scores import write_scores
from tests.annotation.studies import (
    doubt,
    rate,
    rated_study,
    rating_study,
    ticked_study,
)
from tests.console.filled import add_assignment, add_batch, add_scores, scored_study
from tests.console.pages import words_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

PAGES = [
    *("study", "items", "launch", "answers", "agreement", "annotators", "disagreement"),
    *("results", "search", "adjudication", "labels", "validation", "downloads"),
]
HOSTILE = """<script>alert('1')</script>"&<b>"""


def test_the_first_page_lists_studies_with_their_sizes(rosa, researcher):
    rated_study("first", title="First study", owner=researcher)
    ticked_study("second", title="Second study", owner=researcher)
    rows = rosa.get("/").context["rows"]
    assert [(row.study.slug, row.study.n_items, row.study.n_judgments) for row in rows] == [
        ("second", 2, 5),
        ("first", 3, 12),
    ]


def test_studies_are_sorted_and_filtered_by_the_address(rosa, researcher):
    rating_study("few", title="Few items", n_items=1, owner=researcher)
    rating_study("many", title="Many items", n_items=5, owner=researcher)

    def page(**query):
        return words_of(rosa.get("/", query).content.decode())

    assert page().index("Many") < page().index("Few")
    assert page(sort="n_items").index("Few") < page(sort="n_items").index("Many")
    assert "Few" not in page(q="MANY")
    assert "No study contains “nothing”." in page(q="nothing")


def test_a_search_for_a_character_that_no_text_has_is_answered(rosa, researcher):
    rated_study("mine", owner=researcher)
    assert rosa.get(reverse("console:items", args=["mine"]) + "?q=%00d0").status_code == 200
    assert rosa.get("/?q=%00mine").status_code == 200


def test_without_studies_the_first_page_says_how_to_make_one(rosa):
    page = words_of(rosa.get("/").content.decode())
    assert "Your studies will appear here." in page
    assert "Make your first study from a file" in page


def test_an_empty_study_says_what_will_appear(page_text, researcher):
    study = rating_study(n_items=0, questions=(), owner=researcher)
    assert "The study has no items yet. Import some" in page_text(study)
    assert "Add items from a file" in page_text(study, "items")
    assert "nothing launched yet" in page_text(study, "launch")
    assert "Workers' answers will appear here once HITs are published." in page_text(
        study, "answers"
    )
    assert "Agreement will appear once" in page_text(study, "agreement")
    assert "Correlations will appear once there are judgments" in page_text(study, "validation")
    assert "validation.json" not in page_text(study, "downloads")


def test_an_imported_study_leads_to_its_launch(page_text, researcher):
    study = rating_study(owner=researcher)
    assert "3 items are not launched yet. Launch them" in page_text(study)
    assert "Give the study to the team" in page_text(study, "launch")
    assert "Collect answers" not in page_text(study, "answers")
    assert "Score the candidates" in page_text(study, "validation")


def test_a_published_study_shows_how_far_it_is(page_text, researcher):
    study = rated_study(owner=researcher)
    batch = add_batch(study, n_published=2)
    for hit in batch.hits.all()[:2]:
        add_assignment(hit)
    for page in (page_text(study), page_text(study, "answers")):
        assert "HITs published 2 of 3" in page
        assert "Assignments collected 2 of 6 on offer" in page
    assert "1 HIT is not published yet. Launch them" in page_text(study)
    assert "Collect answers" in page_text(study, "answers")
    assert "Judge rated #" in page_text(study, "launch")


def test_items_added_after_publishing_are_counted_until_they_have_a_hit(page_text, researcher):
    study = rating_study(owner=researcher)
    batch = add_batch(study, n_published=3)
    assert "not launched yet" not in page_text(study)
    late = Item.objects.create(study=study, key="late", position=3)
    assert "1 item is not launched yet. Launch them" in page_text(study)
    assert "Launch , under way 3 of 3 HITs; 1 to launch" in page_text(study)
    Item.objects.create(study=study, key="later", position=4)
    assert "2 items are not launched yet. Launch them" in page_text(study)
    Item.objects.get(key="later").delete()
    Hit.objects.create(batch=batch, item=late, hit_id="3LATE")
    assert "no HIT" not in page_text(study)


def test_what_waits_for_approval_is_counted_with_the_day_it_is_approved_automatically(
    page_text, researcher
):
    study = rating_study(owner=researcher)
    [first, second, _] = add_batch(study, n_published=3).hits.all()
    assert "for approval" not in page_text(study)
    add_assignment(first)
    due = "approved automatically on 2026-03-05 at 12:00 UTC."
    assert f"1 submission waits for approval. It is {due}" in page_text(study)
    add_assignment(second)
    assert f"2 submissions wait for approval. The first is {due}" in page_text(study)
    Assignment.objects.filter(hit=first).update(decision="approve")
    Assignment.objects.filter(hit=second).update(status="Approved")
    assert "for approval" not in page_text(study)


def test_the_stages_say_in_words_how_it_stands(page_text, researcher):
    study = rated_study(owner=researcher)
    batch = add_batch(study, n_published=2)
    add_assignment(batch.hits.first(), problem="The answer names no candidate.")
    page = page_text(study)
    assert "Items , done 3" in page
    assert "Launch , under way 2 of 3 HITs" in page
    assert "Collect , needs you 1 unreadable" in page
    assert "Agreement , under way to be computed" in page
    assert "Metrics , not yet" in page
    page_text(study, "agreement")
    assert "Agreement , done computed" in page_text(study)


def test_what_could_not_be_read_is_shown_with_its_reason(page_text, researcher):
    study = rating_study(owner=researcher)
    [first, second, _] = add_batch(study, n_published=3).hits.all()
    add_assignment(first, problem="The answer names no candidate.")
    add_assignment(second)
    assert "1 assignment is kept but could not be read." in page_text(study)
    page = page_text(study, "answers")
    assert "1 assignment is kept but could not be read into judgments." in page
    assert "The answer names no candidate." in page


def test_when_many_could_not_be_read_the_page_shows_fifty_and_counts_all(page_text, researcher):
    study = rating_study(owner=researcher, n_items=1)
    hit = add_batch(study).hits.get()
    for number in range(51):
        add_assignment(hit, f"A{number}", problem="It is empty.")
    page = page_text(study, "answers")
    assert "51 assignments are kept but could not be read" in page
    assert page.count("It is empty.") == 50
    assert page_text(study, "answers", page=2).count("It is empty.") == 1


def test_agreement_comes_before_scores(page_text, researcher):
    study = rated_study(owner=researcher)
    page = page_text(study, "agreement")
    assert re.search(r"Krippendorff's alpha 0\.9\d \[[^]]+\] 6 2 12 jackknife", page)
    assert "ICC(2) Absolute agreement of one annotator drawn from many" in page
    assert "Correlations will appear once" in page_text(study, "validation")
    assert re.search(r"Alpha, appropriateness 0\.9\d \[[^]]+\], n = 6 candidates", page_text(study))
    message = "There are judgments, and no metric's scores to set beside them. Score the candidates"
    assert message in page_text(study)


def test_correlations_are_shown_at_the_level_asked_for(page_text, researcher):
    study = scored_study(owner=researcher)
    by_item = page_text(study, "validation")
    assert "Correlation over the candidates of each item" in by_item
    interval = r"1\.00 \[.0\.\d\d, 1\.00\]"  # three items say little
    assert re.search(rf"nll appropriateness {interval} {interval} {interval} 3 of 3", by_item)
    system = page_text(study, "validation", level="system")
    assert "Correlation of the systems' means" in system
    of_pooled = page_text(study, "validation", level="pooled")
    assert "Correlation over all candidates at once" in of_pooled
    assert "Candidates used" in of_pooled


def test_the_overview_and_the_metrics_page_name_the_same_coefficient_and_level(
    page_text, researcher
):
    study = scored_study(owner=researcher)
    metrics = page_text(study, "validation")
    limits = r"\[.0\.\d\d, 1\.00\]"
    [said] = re.findall(
        rf"The greatest value is nll's: Kendall's τ-b by item, (1\.00 {limits}), n = 3 items\.",
        metrics,
    )
    value, _space, interval = said.partition(" ")
    basis = f"Kendall's τ-b by item, {interval}, n = 3 items; with 3 items only this is a rough"
    assert f"Agrees best, appropriateness: nll {value} {basis} guide" in page_text(study)


def test_the_overview_counts_the_pairs_that_were_tested(page_text, researcher):
    study = scored_study(owner=researcher)
    pairs = [(item.key, one) for item in study.items.all() for one in ("alpha", "beta")]
    other = dict(zip(pairs, (0, 1, 1, 0, 0, 1), strict=True))
    write_scores(study=study, metric="bleu", signature="bleu|v:1", values=other)
    constant = {(item.key, one): 1.0 for item in study.items.all() for one in ("alpha", "beta")}
    write_scores(study=study, metric="flat", signature="flat|v:1", values=constant)
    assert "nll 1.00" in page_text(study, "validation")
    assert "Holm's p over 1 pair" in page_text(study).replace("&#x27;", "'")
    assert "Holm's p over 1 pairs" not in page_text(study)


def test_runs_of_one_metric_are_told_apart_by_their_signature(page_text, researcher):
    study = scored_study(owner=researcher, metrics=("nll", "bleu"))
    values = {("d0", "alpha"): 0.0, ("d0", "beta"): -1.0}
    write_scores(study=study, metric="nll", signature="nll|v:2", values=values)
    page = page_text(study, "validation")
    assert "nll nll|v:1 appropriateness 1.00" in page
    assert "nll nll|v:2 appropriateness −1.00" in page
    assert "bleu appropriateness" in page


def test_missing_scores_are_counted_beside_the_correlation(page_text, researcher):
    study = rated_study(owner=researcher)
    values = {("d0", "alpha"): 1.0, ("d0", "beta"): 2.0, ("d1", "alpha"): 3.0}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    assert "1 of 3 (3 without a score)" in page_text(study, "validation")


def test_conditions_can_be_looked_at_one_by_one(page_text, researcher):
    study = scored_study(owner=researcher, conditions=("calm", "angry & loud"))
    assert "Condition: all calm angry & loud" in page_text(study, "validation")
    angry = page_text(study, "validation", condition="angry & loud")
    assert "1 of 1" in angry


def test_undefined_numbers_say_why(page_text, researcher):
    study = rating_study(owner=researcher, systems=("alpha",), n_items=2, level="nominal")
    for person in ("Ann", "Bob"):
        for item in ("d0", "d1"):
            rate(study, person, item, {"alpha": 1})
    add_scores(study)
    assert "undefined: single category" in page_text(study, "agreement")
    by_item = page_text(study, "validation")
    assert "undefined: no defined item" in by_item
    assert "undefined: constant human" in page_text(study, "validation", level="pooled")
    for name in ("study", "agreement", "validation"):
        assert not re.search(r"\bnan\b", page_text(study, name).lower())


def test_a_lone_annotator_agrees_with_nobody(page_text, researcher):
    study = rating_study(owner=researcher)
    rate(study, "Ann", "d0", {"alpha": 1, "beta": 2})
    assert "undefined: one annotator" in page_text(study, "agreement")


def test_rejected_judgments_leave_the_agreement_without_labels(page_text, researcher):
    study = rated_study(owner=researcher)
    Submission.objects.update(status=Submission.Status.REJECTED)
    assert "undefined: no labels" in page_text(study, "agreement")


def test_alternatives_with_scores_have_correlations(page_text, researcher):
    study = ticked_study(owner=researcher)
    assert "Score the candidates" not in page_text(study, "validation")
    add_scores(study, "cosine")
    assert re.search(r"cosine acceptable −?\d\.\d\d", page_text(study, "validation"))
    assert "undefined: too few" in page_text(study, "validation", level="system")
    page = page_text(study, "downloads")
    assert "validation every correlation, at every level and in every condition JSON" in page
    assert "qrels qrels: topic, document and relevance CSV JSONL PARQUET TXT" in page


def test_scores_are_listed_with_signature_and_direction(page_text, researcher):
    study = rating_study(owner=researcher)
    add_scores(study, "nll", higher_is_better=False)
    assert "nll (lower is better) nll|v:1 6 0" in page_text(study, "validation")


@pytest.mark.parametrize("query", [{"level": "nonsense"}, {"condition": "nonsense"}])
def test_a_level_or_condition_that_is_not_there_is_not_found(rosa, researcher, query):
    scored_study(owner=researcher)
    assert rosa.get(reverse("console:validation", args=["scored"]), query).status_code == 404


def test_an_unknown_study_is_not_found(rosa):
    assert rosa.get(reverse("console:study", args=["none"])).status_code == 404


def test_what_people_wrote_is_shown_as_text(rosa, researcher):
    study = scored_study(owner=researcher, title=HOSTILE, conditions=("calm", HOSTILE))
    batch = add_batch(study)
    batch.title = HOSTILE
    batch.save()
    add_assignment(batch.hits.first(), problem=HOSTILE)
    study.questions.update(name=HOSTILE, level="nominal")
    study.annotators.filter(pseudonym="Ann").update(pseudonym=HOSTILE)
    study.scoring_runs.update(metric=HOSTILE, signature=HOSTILE)
    compute(study, "agreement")
    for name, query in [*((name, {}) for name in PAGES), ("validation", {"condition": HOSTILE})]:
        page = rosa.get(reverse(f"console:{name}", args=["scored"]), query)
        assert page.status_code == 200
        content = page.content.decode()
        assert "&lt;script&gt;" in content
        assert "<script>" not in content
        assert "<b>" not in content
    assert "<script>" not in rosa.get("/").content.decode()


def test_a_username_is_shown_as_text(signed_in, db):
    name = "<b>eve</b>"
    page = signed_in(User.objects.create(username=name)).get("/").content.decode()
    assert "&lt;b&gt;eve&lt;/b&gt;" in page
    assert name not in page


def queries_of(browser, where):
    with CaptureQueriesContext(connection) as queries:
        assert browser.get(where).status_code == 200
    return len(queries)


def test_the_list_takes_as_many_queries_for_many_studies_as_for_one(rosa, researcher):
    rated_study("first", owner=researcher)
    one = queries_of(rosa, "/")
    for number in range(5):
        rated_study(f"more-{number}", owner=researcher, n_items=4)
    assert queries_of(rosa, "/") == one


@pytest.mark.parametrize("name", PAGES)
def test_a_page_takes_as_many_queries_for_a_large_study_as_for_a_small_one(rosa, researcher, name):
    counts = []
    for slug, n_items, metrics in [
        ("small", 2, ("nll", "bleu")),
        ("large", 8, ("nll", "bleu", "chrf")),
    ]:
        study = scored_study(slug, owner=researcher, n_items=n_items, metrics=metrics)
        add_batch(study, n_published=n_items - 1)
        for hit in Hit.objects.filter(batch__study=study):
            add_assignment(hit, problem="It is empty.")
        compute(study, "agreement")
        where = reverse(f"console:{name}", args=[slug])
        rosa.get(where)
        counts.append(queries_of(rosa, where))
    assert counts[0] == counts[1]


def test_an_item_takes_as_many_queries_with_many_judgments_as_with_few(rosa, researcher):
    counts = []
    for slug, annotators in [("few", ("Ann",)), ("many", ("Ann", "Bob", "Cyd", "Dan"))]:
        study = rating_study(slug, owner=researcher)
        for person in annotators:
            rate(study, person, "d0", {"alpha": 1, "beta": 2})
        item = study.items.first()
        counts.append(queries_of(rosa, reverse("console:item", args=[slug, item.pk])))
    assert counts[0] == counts[1]


def test_an_item_shows_everyones_judgments_side_by_side(rosa, researcher):
    study = rated_study(owner=researcher)
    study.items.get(key="d0").submissions.update(justification="It fits.")
    where = reverse("console:item", args=["rated", study.items.get(key="d0").pk])
    page = words_of(rosa.get(where).content.decode())
    assert "Candidate Ann Bob Mean alpha alpha on d0 20 25 22.50" in page
    assert "It fits." in page
    assert "Next item" in page
    assert "Previous item" not in page


def test_an_item_that_nobody_has_judged_shows_its_candidates_in_full(rosa, researcher):
    study = rating_study(owner=researcher)
    item = study.items.get(key="d0")
    text = "A long answer. " * 40
    item.candidates.filter(key="alpha").update(text=text)
    item.candidates.filter(key="beta").update(text="")
    where = reverse("console:item", args=[study.slug, item.pk])
    page = words_of(rosa.get(where).content.decode())
    assert f"alpha {text.strip()}" in page
    assert "beta No text and no picture." in page


REASONS = [("", "Nothing was flagged"), ("x" * 201, "at most 200 characters"), ("fast", "counts")]


@pytest.mark.parametrize(("reason", "message"), REASONS)
def test_a_submission_is_flagged_beside_its_judgments_where_a_reason_is_given(
    rosa, researcher, reason, message
):
    study = rated_study(owner=researcher)
    submission = study.items.get(key="d0").submissions.get(annotator__pseudonym="Bob")
    where = reverse("console:flag", args=["rated", submission.pk])
    page = words_of(rosa.post(where, {"reason": reason}, follow=True).content.decode())
    assert message in page
    assert ("fast Remove flag" in page) == (reason == "fast")
    assert list(Submission.objects.flagged()) == [submission] * (reason == "fast")


def test_a_flag_is_taken_away(rosa, researcher):
    study = rated_study(owner=researcher)
    doubt(*study.items.get(key="d0").submissions.all())
    ann, bob = Submission.objects.flagged().order_by("annotator__pseudonym")
    page = rosa.post(reverse("console:unflag", args=["rated", ann.pk]), follow=True)
    assert words_of(page.content.decode()).count("Remove flag") == 1
    assert list(Submission.objects.flagged()) == [bob]


def test_a_submission_of_another_study_is_not_flagged(rosa, researcher):
    rated_study(owner=researcher)
    other = rated_study("other")
    theirs = other.items.first().submissions.first()
    for slug in ("rated", "other"):
        where = reverse("console:flag", args=[slug, theirs.pk])
        assert rosa.post(where, {"reason": "fast"}).status_code == 404
    assert not Submission.objects.flagged().exists()


def test_ticks_are_told_in_the_words_of_their_categories(rosa, researcher):
    study = ticked_study(owner=researcher)
    where = reverse("console:item", args=["ticked", study.items.get(key="boot").pk])
    assert "clog clog on boot yes" in words_of(rosa.get(where).content.decode())


def test_an_item_of_another_study_is_not_found(rosa, researcher):
    rated_study(owner=researcher)
    other = rated_study("other", owner=researcher)
    where = reverse("console:item", args=["rated", other.items.first().pk])
    assert rosa.get(where).status_code == 404


def test_items_are_sorted_filtered_and_paged_by_the_address(page_text, researcher):
    study = rating_study(owner=researcher, n_items=60)
    rate(study, "Ann", "d7", {"alpha": 1})
    page = page_text(study, "items")
    assert "60 of 60 items" in page
    assert "Context 49" in page
    assert "Context 50" not in page
    assert "Context 50" in page_text(study, "items", after=study.items.get(key="d49").pk)
    assert "1 of 60 items" in page_text(study, "items", q="Context 41")
    by_submissions = page_text(study, "items", sort="-n_submissions")
    assert by_submissions.index("Context 7") < by_submissions.index("Context 0")
    assert "Context 0" in page_text(study, "items", sort="password")
    assert "No item contains “nothing”." in page_text(study, "items", q="nothing")


def test_questions_cost_no_queries_of_their_own(rosa, researcher):
    one = rated_study("one", owner=researcher)
    three = rated_study("three", owner=researcher, questions=("a", "b", "c"))
    assert Question.objects.filter(study=three).count() == 3
    counts = [queries_of(rosa, reverse("console:study", args=[s.slug])) for s in (one, three)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", ["agreement", "validation"])
def test_a_page_read_again_computes_nothing_again(rosa, researcher, name):
    scored_study(owner=researcher)
    where = reverse(f"console:{name}", args=["scored"])
    first = queries_of(rosa, where)
    assert queries_of(rosa, where) < first


def test_pages_ask_nothing_of_other_sites_and_bear_the_policy(rosa, researcher):
    compute(scored_study(owner=researcher), "agreement")
    of_study = [reverse(f"console:{name}", args=["scored"]) for name in PAGES]
    for where in ("/", "/login/", *of_study):
        answer = rosa.get(where, follow=True)
        page = answer.content.decode()
        assert not re.search(r"""(src|href|action)=["']?(https?:)?//""", page)
        assert not re.search(r"""<style|\sstyle=|\son[a-z]+=|<script(?![^>]* src=)""", page)
        assert "script-src 'self'" in answer["Content-Security-Policy"].split("; ")


def test_candidates_of_a_study_without_text_do_no_harm(page_text, researcher):
    study = rated_study(owner=researcher)
    Candidate.objects.update(text="", system="")
    add_scores(study)
    assert "undefined: too few" in page_text(study, "validation", level="system")
    assert Study.objects.count() == 1


def test_an_address_that_is_not_there_says_so_and_leads_back(rosa):
    answer = rosa.get("/studies/nothing/")
    assert answer.status_code == 404
    page = words_of(answer.content.decode())
    assert "There is nothing at this address" in page
    assert "To the first page" in page


def test_scores_that_nobody_judged_leave_nothing_to_be_computed(page_text, researcher):
    study = rating_study(owner=researcher)
    add_scores(study)
    assert "Metrics , not yet" in page_text(study)


def test_metrics_are_explained_where_they_are_chosen(page_text, researcher):
    page = page_text(rating_study(owner=researcher), "validation")
    assert "What each is rouge1 ROUGE-1: overlap in words with the reference" in page


def test_alternatives_without_scores_say_how_to_bring_some(page_text, researcher):
    message = "Import scores from a file."
    assert message in page_text(ticked_study(owner=researcher), "validation")


def test_nobody_is_asked_for_what_their_role_does_not_do(signed_in, researcher, colleague):
    study = rating_study(owner=researcher)
    set_study_role(study=study, user=colleague, role=Role.ANALYST, actor=researcher)
    url = reverse("console:study", args=[study.slug])
    assert "Launch them" in signed_in(researcher).get(url).content.decode()
    page = signed_in(colleague).get(url).content.decode()
    assert "Launch them" not in page
    assert "Needs you" not in page
