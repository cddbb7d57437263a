import csv
import json
import re
from html import unescape
from io import BytesIO, StringIO

import pandas as pd
import pytest
from django.urls import reverse

from accounts import models, roles
from accounts.teams import create_team
from annotation.access import give_to_team, set_study_role
from annotation.models import (
    Adjudication,
    Candidate,
    DisputeComment,
    Picture,
    Submission,
    WrittenAnswer,
)
from presentation.row_files import from_cell
from tests.annotation.studies import rate, rating_study, tick, ticked_study
from tests.codes import codes_on
from tests.console import pages, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    """Ann and Bob are far apart on d1, less so on d0, and one on d2."""
    study = rating_study(owner=researcher, systems=("alpha",))
    for item, first, second in (("d0", 40, 70), ("d1", 10, 90), ("d2", 70, 70)):
        rate(study, "Ann", item, {"alpha": first})
        rate(study, "Bob", item, {"alpha": second})
    return study


@pytest.fixture
def look(rosa):
    def page(study, **query):
        answer = rosa.get(reverse("console:adjudication", args=[study.slug]), query)
        assert answer.status_code == 200
        return answer.content.decode()

    return page


def decide(browser, study, item, view="decision", **form):
    candidate = study.items.get(key=item).candidates.first()
    where = reverse(f"console:{view}", args=[study.slug, candidate.pk])
    answer = browser.post(where, form, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def progress_of(page):
    """How many of the disputes are decided, by the bar of progress; then how many there are."""
    total, n_decided = re.search(r'<progress max="(\d+)" value="(\d+)"', page).groups()
    return int(n_decided), int(total)


def test_the_candidate_with_least_agreement_comes_first_and_can_be_skipped(rosa, look, study):
    assert progress_of(look(study)) == (0, 2)
    page = rosa.get(reverse("console:adjudication", args=[study.slug]))
    first, waiting = page.context["dispute"], page.context["waiting"]
    assert (first.item, [one.item for one in waiting]) == ("d1", ["d0"])
    assert first.blind_name == study.items.get(key="d1").candidates.get().blind_name
    assert "Ann 10 – – Bob 90 – –" in pages.words_of(page.content.decode())
    page = look(study, skip=1)
    assert "d0</a>" in page
    assert "d1</a>" not in page
    assert "all_skipped" in codes_on(look(study, skip=2))


def test_written_answers_of_the_page_and_about_the_candidate_are_next_to_the_values(
    rosa, look, study
):
    submission = Submission.objects.get(annotator__pseudonym="Bob", item__key="d1")
    [candidate] = submission.item.candidates.all()
    elsewhere = study.items.get(key="d0").candidates.get()
    words = "1. Rude.\n2. Short."
    for about, text in ((None, words), (candidate, "Off-topic."), (elsewhere, "No")):
        question = "why" if about is None else f"about_{about.item.key}"
        WrittenAnswer.objects.create(
            submission=submission, question=question, candidate=about, text=text
        )
    page = look(study)
    assert "90 why: 1. Rude. 2. Short. about_d1: Off-topic. –" in pages.words_of(page)
    item_page = rosa.get(reverse("console:item", args=[study.slug, submission.item_id])).text
    for each in (page, item_page):
        assert re.search(f'class="said"><span[^>]*>why:</span> {re.escape(words)}</p>', each)
    answer = rosa.get(reverse("console:api-study-disputes", args=[study.slug])).json()
    written = {each["annotator"]: each["written"] for each in answer["disputes"][0]["opinions"]}
    assert written == {"Ann": {}, "Bob": {"why": words, "about_d1": "Off-topic."}}


@pytest.mark.slow
def test_a_decision_is_kept_with_who_made_it_and_leads_to_the_next(rosa, look, study, researcher):
    page = decide(rosa, study, "d1", value="35.5", note="Bob misread it.")
    assert progress_of(page) == (1, 2)
    assert "d0</a>" in page[page.index('id="now"') :]
    decision = Adjudication.objects.get()
    expected = (35.5, "Bob misread it.", researcher)
    assert (decision.value, decision.note, decision.decided_by) == expected
    decide(rosa, study, "d0", value="45")
    page = look(study)
    assert "all_decided" in codes_on(page)
    assert reverse("console:labels", args=[study.slug]) in page
    # A later decision does not delete the one before.
    decide(rosa, study, "d1", value="30")
    assert [each.value for each in Adjudication.objects.order_by("pk")] == [35.5, 45, 30]
    page = look(study, decided=1)
    assert "rosa" in pages.words_of(page[page.index("<main") :])
    assert 'value="30"' in page


@pytest.mark.slow
def test_a_value_off_the_scale_decides_nothing_and_says_why(rosa, study):
    for value in ("104", "-1", "much", "", "nan"):
        decided = codes_on(decide(rosa, study, "d1", value=value))
        assert {"nothing_decided", "decision_refused"} & set(decided), value
    assert not Adjudication.objects.exists()


def test_another_studys_candidate_question_or_round_is_not_found(rosa, study, researcher):
    candidate = rating_study("other", owner=researcher).items.first().candidates.first()
    where = reverse("console:decision", args=[study.slug, candidate.pk])
    assert rosa.post(where, {"value": "5"}).status_code == 404
    where = reverse("console:adjudication", args=[study.slug])
    assert rosa.get(where, {"question": "nothing"}).status_code == 404
    candidate = study.items.get(key="d1").candidates.get()
    decision = reverse("console:decision", args=[study.slug, candidate.pk])
    for round in ("7", "-1", "one"):
        assert rosa.get(where, {"round": round}).status_code == 404
        assert rosa.post(decision, {"value": "50", "round": round}).status_code == 404
    assert not Adjudication.objects.exists()


@pytest.mark.slow
def test_rounds_are_decided_apart(rosa, look, study):
    rate(study, "Ann", "d0", {"alpha": 0}, round=2)
    rate(study, "Bob", "d0", {"alpha": 100}, round=2)
    assert progress_of(look(study, round=2)) == (0, 1)
    decide(rosa, study, "d0", value="50", round="2")
    assert Adjudication.objects.get().round == 2
    assert progress_of(look(study)) == (0, 2)


@pytest.mark.slow
def test_the_threshold_is_in_the_address_and_stays_with_a_decision(rosa, look, study):
    for threshold in ("much", "-1", "1", "nan", ""):
        page = look(study, threshold=threshold)  # then the scale's own counts
        assert progress_of(page) == (0, 2)
        assert ('id="threshold-problem" role="alert"' in page) == bool(threshold)
        assert f"“{threshold}”" in page or not threshold
    page = look(study, threshold="0.5")
    assert progress_of(page) == (0, 1)
    assert 'name="threshold" value="0.5"' in page
    assert progress_of(decide(rosa, study, "d1", value="50", threshold="0.5")) == (1, 1)


@pytest.mark.slow
def test_the_queue_of_the_judgments_before_stands_while_a_newer_one_is_made(look, study, settings):
    look(study)
    settings.TASKS = work.QUEUED
    rate(study, "Cyd", "d2", {"alpha": 0})
    assert progress_of(look(study)) == (0, 2)
    assert "earlier_queue" in codes_on(look(study))


def comment(browser, study, item, text, **form):
    return decide(browser, study, item, "comment-add", text=text, **form)


@pytest.mark.slow
def test_colleagues_comment_on_a_dispute_and_stay_with_it(rosa, look, study):
    page = comment(rosa, study, "d0", "Bob may be right.", skip="1")
    now, _comments, comments = page.partition('id="comments"')
    assert "d0</a>" in now[now.index('id="now"') :]
    assert "Bob may be right." in comments
    assert "<strong>rosa</strong>" in comments
    assert "Bob may be right." not in look(study)


def test_a_comment_in_any_script_is_taken_and_none_that_nobody_can_read(rosa, study):
    for text, code in (
        *((one, "length") for one in ("  ", "x" * 2001)),
        *((one, "unseen") for one in ("\u200b", " \u200b\u2060 \ufeff", "\u3164")),
        *((one, "unseen") for one in ("\u2800\u2800", "\u00ad", "\u0301", "\u202e")),
    ):
        assert code in codes_on(comment(rosa, study, "d1", text)), repr(text)
    assert not DisputeComment.objects.exists()
    for text in ("\u200fשלום", "👩\u200d🔬", "نعم", "é"):
        comment(rosa, study, "d1", text)
    assert DisputeComment.objects.count() == 4


HOSTILE = [
    '=HYPERLINK("http://evil.example","Look")',
    "+1+cmd|' /C calc'!A0",
    "@SUM(1,1)",
    "-2+3",
    "＝1+1",
    "'=1+1",
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "{{ 7|add:7 }} {% now 'Y' %}",
    'a, "b";\n=1+1',
]


@pytest.mark.slow
def test_hostile_comments_are_text_on_the_page_and_in_every_file(rosa, study):
    for text in HOSTILE:
        page = comment(rosa, study, "d1", text)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7|add:7 }}" in unescape(page)

    def file(form):
        where = reverse("console:download", args=[study.slug, f"comments.{form}"])
        return rosa.get(where).getvalue()

    cells = [row["text"] for row in csv.DictReader(StringIO(file("csv").decode()))]
    assert [cell[0] in "=+-@＝\t\r" for cell in cells] == [False] * len(HOSTILE)
    assert [from_cell(cell) for cell in cells] == HOSTILE
    assert [json.loads(line)["text"] for line in file("jsonl").decode().splitlines()] == HOSTILE
    assert pd.read_parquet(BytesIO(file("parquet")))["text"].tolist() == HOSTILE


@pytest.mark.slow
def test_a_comment_is_edited_and_deleted_by_who_wrote_it_alone(
    rosa, look, study, signed_in, colleague, researcher
):
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    set_study_role(study=study, user=colleague, role=roles.Role.ADJUDICATOR, actor=researcher)
    comment(rosa, study, "d1", "Look again.")
    row = DisputeComment.objects.get()
    edit, delete = (
        reverse(f"console:comment-{name}", args=[study.slug, row.pk]) for name in ("edit", "delete")
    )
    carl = signed_in(colleague)
    assert carl.post(edit, {"text": "No."}).status_code == 404
    assert carl.post(delete).status_code == 404
    page = carl.get(reverse("console:adjudication", args=[study.slug])).content.decode()
    assert "Look again." in page
    assert "comments/1/edit/" not in page
    rosa.post(edit, {"text": "Look once more."})
    assert DisputeComment.objects.get().edited_at is not None
    files = rosa.get(reverse("console:download", args=[study.slug, "comments.csv"])).getvalue()
    assert b"Look once more.,rosa," in files
    rosa.post(delete)
    assert not DisputeComment.objects.exists()
    entry = models.AuditEntry.objects.of(study.team).first()
    assert (entry.action, entry.actor_name) == ("comment.delete", "rosa")
    assert "Look" not in str(entry.details)


def test_categories_are_chosen_by_name_beside_both_pictures(rosa, look, researcher):
    study = ticked_study(owner=researcher)
    tick(study, "Bob", "boot", {"clog"})
    picture = Picture.objects.create(sha256="0" * 64, media_type="image/png", content=b"")
    study.items.update(picture=picture)
    Candidate.objects.filter(item__study=study).update(picture=picture)
    page = look(study)
    assert page.count(reverse("console:picture", args=[picture.sha256])) == 4
    assert page.count('popovertarget="enlarged"') == 2
    Candidate.objects.filter(item__study=study).update(picture=None)
    page = look(study)
    assert page.count(reverse("console:picture", args=[picture.sha256])) == 2
    assert "Ann yes" in pages.words_of(page)
    candidate = study.items.get(key="boot").candidates.get(key="pump")
    where = reverse("console:decision", args=[study.slug, candidate.pk])
    rosa.post(where, {"value": "1"})
    assert Adjudication.objects.get().value == 1
    rosa.post(where, {"value": "2"})
    assert Adjudication.objects.count() == 1


@pytest.mark.slow
def test_who_does_not_decide_reads_on_without_a_form(rosa, study, researcher, colleague, signed_in):
    set_study_role(study=study, user=colleague, role=roles.Role.ANALYST, actor=researcher)
    comment(rosa, study, "d1", "Look again.")
    browser, where = signed_in(colleague), reverse("console:adjudication", args=[study.slug])
    page = browser.get(where).content.decode()
    assert "Look again." in page
    assert "<textarea" not in page
    main = page[page.index("<main") :]
    assert 'method="post"' not in main
    [onward] = re.findall(r'class="btn btn-outline-secondary" href="(\?[^"]*)"', main)
    assert "d0</a>" in browser.get(where + unescape(onward)).content.decode()
