import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from django.conf import settings
from django.core.management import call_command
from django.urls import reverse
from django.utils.translation import gettext

from accounts.models import User
from annotation import flags, study_facts
from annotation.flags import count_judgments_change
from annotation.models import Study, StudyMembership, Submission, SubmissionEvidence
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document, freeze, save_draft
from annotation.result_kinds.base import find_study_kind
from config.samples import write_report
from hits.models import Statement
from presentation.documents import Document, Section, Verbatim
from presentation.latex import document_latex
from tests.annotation.studies import make_simulated, rate, rated_study, rating_study, ticked_study
from tests.console import filled, sample_study
from validation import datasheet, heds

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

HEDS_NUMBERS = (
    *("1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "2.4", "2.5", "3.1.1", "3.1.2", "3.1.3"),
    *(f"3.2.{n}" for n in range(1, 6)),
    *(f"3.3.{n}" for n in range(1, 9)),
    *("4.1.1", "4.1.2", "4.1.3", "4.2.1", "4.2.2", "4.2.3"),
    *(f"4.3.{n}" for n in range(1, 12)),
    *("5.1", "5.2", "5.3", "5.4"),
)


@pytest.fixture
def study(researcher):
    study = rating_study(owner=researcher, questions=())
    save_draft(study=study, document=read_protocol("style_ratings"))
    freeze(study=study)
    for question in study.questions.all():
        for person, more in (("Ann", 0), ("Bob", 5)):
            for index, item in enumerate(study.items.all()):
                values = {"alpha": 20 + index + more, "beta": 50 + index + more}
                rate(study, person, item.key, values, question=question.name)
    batch = filled.add_batch(study)
    assignment = filled.add_assignment(batch.hits.exclude(hit_id="").get())
    submission = Submission.objects.of(study).first()
    Submission.objects.filter(pk=submission.pk).update(
        status=Submission.Status.REJECTED, submitted_at=filled.NOON, seconds=90
    )
    assignment.submission = submission
    assignment.save()
    Statement.objects.create(
        batch=batch, fetched_at=filled.NOON, rewards_usd=Decimal("0.10"), fees_usd=0, bonuses_usd=0,
        bonus_fees_usd=0, held_usd=0, n_accepted=0, n_submitted=1, n_approved=0, n_rejected=0,
        n_returned=2, n_abandoned=1,
    )  # fmt: skip
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    return study


# The rows of the table of annotators and submissions.
PEOPLE = (
    *("first", "last", "annotators", "items", "submissions", "simulated", "approved"),
    *("rejected", "flagged", "measured", "consents", "dropouts", "judgments", "failed_checks"),
)


def text_of(client, study, name):
    answer = client.get(reverse("console:report-file", args=[study.slug, name]))
    assert answer.status_code == 200
    return answer.content.decode()


def people_of(client, study):
    document = datasheet.datasheet_document(Study.objects.get(pk=study.pk), None, with_money=True)
    [table] = [one for one in document.tables if one.name == "people"]
    text = text_of(client, study, "datasheet.md").replace("\\", "")
    assert all(f"| {title} | {value} |" in text for title, value in table.rows)
    return dict(zip(PEOPLE, (value for _title, value in table.rows), strict=True))


def test_a_datasheet_states_what_was_asked_of_whom_and_what_came_of_it(rosa, study):
    raw = text_of(rosa, study, "datasheet.md")
    text = raw.replace("\\", "")
    document = study_facts.StudyFacts(study).protocol
    for question in document.questions:
        assert question.wording in text
    assert "\n".join(document.instructions.splitlines()) in raw
    people = people_of(rosa, study)
    assert (people["annotators"], people["rejected"], people["dropouts"]) == ("2", "1", "3")
    assert people["first"] == "2026-03-02 12:00 UTC"
    assert "krippendorff_alpha|question:" in text


HEADED = "# Rate the replies\r\n\r\n- Ignore **typos** & ```code```\r\n- Don't <b>guess</b>"


def test_instructions_keep_their_breaks_and_signs_in_both_datasheets_and_in_latex(rosa, researcher):
    study = rated_study(owner=researcher)
    save_draft(study=study, document=replace(current_document(study), instructions=HEADED))
    fenced = "````\n{}\n````".format(HEADED.replace("\r\n", "\n"))
    for name in ("datasheet", "heds"):
        assert fenced in text_of(rosa, study, f"{name}.md")
        page = text_of(rosa, study, f"{name}.html")
        assert "\n- Don&#x27;t &lt;b&gt;guess&lt;/b&gt;\n</pre>" in page
    part = Verbatim("Instructions", "# 50 % of\n\nthese_words")
    lines = document_latex(Document("Title", [Section("Protocol", [part])])).splitlines()
    at = lines.index("Instructions:")
    assert lines[at + 2 : at + 6] == [
        *(r"\# 50 \% of\par", r"\medskip", r"these\_words\par", r"\end{quote}")
    ]


def test_flags_by_hand_and_flags_of_the_review_desk_are_counted_apart(rosa, study):
    first, second, *_others = Submission.objects.of(study).order_by("pk")
    Submission.objects.filter(pk=first.pk).update(flag_reason="Odd.")
    people = people_of(rosa, study)
    assert (people["flagged"], people["measured"].isdecimal()) == ("1", False)
    flags.store_evidence(study)
    SubmissionEvidence.objects.update(is_flagged=False)
    SubmissionEvidence.objects.filter(submission=second).update(is_flagged=True)
    people = people_of(rosa, study)
    n = SubmissionEvidence.objects.count()
    whole = Submission.objects.of(study).count() == n
    assert people["flagged"] == "1"
    assert re.findall(r"\d+", people["measured"]) == (["1"] if whole else ["1", str(n)])
    SubmissionEvidence.objects.exclude(submission=second).delete()
    assert re.findall(r"\d+", people_of(rosa, study)["measured"]) == ["1", "1"]


def test_pay_is_for_roles_that_may_see_costs_and_no_worker_is_named(rosa, study, client):
    assert "0.10" in text_of(rosa, study, "datasheet.md")
    analyst = User.objects.create_user("ana")
    StudyMembership.objects.create(study=study, user=analyst, role="analyst")
    client.force_login(analyst)
    for name in ("datasheet.md", "heds.md"):
        assert "0.10" not in text_of(client, study, name)
    for name in ("datasheet.md", "datasheet.html", "heds.md", "heds.html"):
        assert "A1WORKER" not in text_of(rosa, study, name)


def test_numbers_of_different_questions_and_systems_have_different_signatures(study):
    study.refresh_from_db()
    document = datasheet.datasheet_document(study, None, with_money=True)
    [appendix] = [table for table in document.tables if table.name == "signatures"]
    signatures = [row[-1] for row in appendix.rows]
    assert len(set(signatures)) == len(signatures) >= 6
    # What a study counts, no id and no fingerprint: said by its name.
    ending = f"|judgments_version:{study.judgments_version}"
    assert all(one.endswith(ending) for one in signatures if one.startswith("mean|"))
    assert any(one.startswith("mean|") for one in signatures)


def test_pay_leaves_out_simulated_times_and_counts_them(study):
    def pay():
        facts = Study.objects.get(pk=study.pk)
        tables = datasheet.datasheet_document(facts, None, with_money=True).tables
        [(*_, hourly, n_left_out)] = next(each for each in tables if each.name == "pay").rows
        return hourly.value, n_left_out

    # $0.10 for 90 seconds
    assert pay() == (4, 0)
    Submission.objects.update(is_simulated=True)
    count_judgments_change(study_ids=[study.pk])
    assert pay() == (None, 1)


def test_heds_has_every_question_says_what_is_known_and_marks_what_is_not(rosa, study):
    text = text_of(rosa, study, "heds.md")
    numbers = re.findall(r"^\| ([0-9.]+) \|", text, re.M)
    n_questions = len(study_facts.StudyFacts(study).protocol.questions)
    expected = [n for n in HEDS_NUMBERS if n[0] in "123"]
    expected += [n for n in HEDS_NUMBERS if n[0] == "4"] * n_questions
    expected += [n for n in HEDS_NUMBERS if n[0] == "5"]
    assert numbers == expected
    n_open = len(re.findall(rf"{gettext(heds.UNKNOWN)} \|", text))
    assert n_open > 10
    assert {str(n_open), str(len(numbers))} <= set(re.findall(r"\d+", text[-400:]))
    rows = dict(re.findall(r"^\| ([0-9.]+) \| [^|]* \| (.*) \|$", text, re.M))
    assert re.findall(r"\d+", rows["3.1.1"]) == ["3", "3"]
    assert rows["3.2.1"] == "2"
    assert " 2 " in rows["4.2.2"]
    assert rows["4.3.3"] == "101"
    assert rows["4.3.5"] == gettext(heds.SLIDER)


def test_both_begin_with_what_is_simulated_and_the_datasheet_with_the_answer(rosa, study):
    answer = datasheet.answer_of(study_facts.StudyFacts(study), None)
    lines = text_of(rosa, study, "datasheet.md").replace("\\", "").splitlines()
    assert lines[2] == f"**{answer}**"
    assert f"</h1>\n<p><b>{answer}</b></p>" in text_of(rosa, study, "datasheet.html")
    assert study_facts.simulation_notice(study) == ""
    for n in (1, None):
        make_simulated(study, *([n] if n else []))
        notice = study_facts.simulation_notice(Study.objects.get(pk=study.pk))
        assert notice
        for name in ("datasheet.md", "heds.md"):
            first = text_of(rosa, study, name).splitlines()[2].replace("\\", "")
            assert first.startswith(f"**{notice}")
    assert people_of(rosa, study)["simulated"] == "6"


def test_any_study_has_datasheets_on_its_reports_page(rosa, researcher):
    for build in (rated_study, ticked_study, rating_study):
        study = build(owner=researcher)
        page = rosa.get(reverse("console:report", args=[study.slug])).content.decode()
        for name in ("datasheet.html", "datasheet.md", "heds.html", "heds.md"):
            assert reverse("console:report-file", args=[study.slug, name]) in page
            assert text_of(rosa, study, name)
    # Nobody judged the last.
    answers = [row[2] for table in heds.heds_document(study, None).tables for row in table.rows]
    assert answers.count(gettext(heds.UNKNOWN)) > 20


def test_the_command_writes_all_four(study, tmp_path, capsys):
    call_command("export_datasheet", study.slug, tmp_path, without_pay=True)
    assert capsys.readouterr().out.count(str(tmp_path)) == 1
    assert {path.name for path in tmp_path.iterdir()} == {
        *("datasheet.html", "datasheet.md", "heds.html", "heds.md")
    }
    assert "0.10" not in (tmp_path / "datasheet.md").read_text()


@pytest.mark.slow
def test_the_report_of_the_sample_is_light_and_has_what_the_demonstration_names(
    rosa, researcher, tmp_path
):
    study = sample_study.rated_sample(researcher)
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    find_study_kind(study_facts.REPORT).compute_now(study)
    page = text_of(rosa, study, "report.html")
    assert len(page.encode()) <= 500_000
    # Letters of a picture or a script in base64 say nothing.
    assert "USD" not in re.sub(r"[A-Za-z0-9+/=]{200,}", "", page)
    report = json.loads(text_of(rosa, study, "report.json"))
    assert report["answer"]
    assert report["answer"].split(".")[0] in page.split("</h1>")[1][:600]
    assert {"system-means", "questions", "people", "agreement"} <= set(report["tables"])
    there = headings(page)
    assert len(there) > 6
    call_command("report", study.slug, output=tmp_path / "report")
    assert headings((tmp_path / "report" / "report.html").read_text()) == there
    assert headings(write_report(study, tmp_path).read_text()) == there
    named = (settings.BASE_DIR / "docs" / "demo.md").read_text("utf-8")
    named = re.findall(r"\*([A-Z][^*]+)\*", named.split("## What to look at")[1])
    assert len(named) > 6
    assert {gettext(one) for one in named} <= set(there)


def headings(page):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)
