"""What annotators wrote and how long they took: on the item's page and in files."""

import csv
import io
import json
from datetime import timedelta

import lxml.html
import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.agreement_records import agreement_records
from annotation.models import Submission
from console.results import require_agreement
from tests.annotation.studies import doubt, rate, rating_study
from tests.console.filled import NOON, add_assignment, add_batch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    """An item that Ann did through a HIT, with remarks, and Bob by hand, who was not measured."""
    study = rating_study(owner=researcher, n_items=1)
    rate(study, "Bob", "d0", {"alpha": 1, "beta": 2})
    ann = rate(study, "Ann", "d0", {"alpha": 3, "beta": 4}, status="rejected")
    assignment = add_assignment(add_batch(study).hits.get())
    assignment.submission = ann
    assignment.save()
    Submission.objects.filter(pk=ann.pk).update(
        justification="Alpha is rude.",
        comment="The second picture is <b>broken</b>!",
        seconds=95.5,
        active_seconds=61.25,
        pasted=True,
        accepted_at=NOON,
        submitted_at=NOON + timedelta(seconds=95.5),
    )
    return study


def test_the_items_page_has_remarks_times_and_status_and_names_no_worker(rosa, study):
    where = reverse("console:item", args=[study.slug, study.items.get().pk])
    content = rosa.get(where).content.decode()
    table = lxml.html.fromstring(content).xpath("//table[@class='submissions']/tbody/tr")
    bob, ann = ([cell.text_content().split("\n")[0].strip() for cell in row] for row in table)
    assert ann[4].startswith("Alpha is rude.")
    assert ann[5] == "The second picture is <b>broken</b>!"
    assert ann[6:] == ["95.5", "61.3", "2026-03-02 12:00:00", "2026-03-02 12:01:35"]
    # Bob's times and remarks are not known, which is not the same as none.
    assert bob[4:] == ["–"] * 6
    ann, bob = study.items.get().submissions.order_by("annotator__pseudonym")
    assert content.count(ann.get_status_display()) == content.count(bob.get_status_display()) == 1
    assert content.count("A1WORKER") == content.count("3ASSIGNMENT") == 1
    assert "WorkerId" not in content


def test_submissions_download_while_they_are_read(rosa, study):
    where = reverse("console:download", args=[study.slug, "submissions.csv"])
    answer = rosa.get(where)
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="ratings-submissions.csv"'
    ann, bob = csv.DictReader(io.StringIO(answer.getvalue().decode()))
    assert (ann["annotator"], ann["comment"]) == ("Ann", "The second picture is <b>broken</b>!")
    assert (ann["seconds"], ann["active_seconds"], ann["pasted"]) == ("95.5", "61.25", "True")
    assert ann["submitted_at"] == "2026-03-02T12:01:35.500000+00:00"
    assert (bob["annotator"], bob["pasted"], bob["hit_id"]) == ("Bob", "", "")


def test_submissions_download_as_lines_of_json(rosa, study):
    answer = rosa.get(reverse("console:download", args=[study.slug, "submissions.jsonl"]))
    ann, bob = map(json.loads, answer.getvalue().decode().splitlines())
    assert (ann["pasted"], bob["pasted"]) == (True, None)
    assert (ann["status"], bob["status"]) == ("rejected", "approved")


def test_the_export_of_judgments_gives_the_pages_agreement(rosa, researcher, tmp_path, capsys):
    """The project's own file goes into its own command, and every coefficient comes out again."""
    study = uneven_study(researcher)
    path = tmp_path / "judgments.csv"
    path.write_bytes(rosa.get(reverse("console:download", args=["ratings", path.name])).getvalue())
    coefficients = agreement_records(require_agreement(study))["coefficients"]
    rows = [row for row in coefficients if row["round"] == 1 and row["with_flagged"]]
    n_compared = 0
    for question in ("=style", "sense"):
        for condition in ("", "calm", "-angry"):
            where = ["round=1", f"question={question}"]
            where += [f"condition={condition}"] if condition else []
            in_file = agreement_of(path, where, capsys)
            for row in rows:
                if (row["question"], row["by"]) == (question, condition):
                    twin = in_file[row["name"]]
                    for name in ("value", "ci_low", "ci_high", "se"):
                        there, here = (_number(each[name]) for each in (twin, row))
                        assert there == pytest.approx(here, rel=1e-12, nan_ok=True)
                        n_compared += row["name"] == "krippendorff_alpha"
    assert n_compared == 2 * 3 * 4


def _number(value):
    """Undefined is null in JSON."""
    return float("nan") if value is None else value


def uneven_study(owner):
    """Two questions, two conditions and two rounds; not everybody rated everything."""
    questions = ("=style", "sense")
    study = rating_study(owner=owner, n_items=6, questions=questions, conditions=("calm", "-angry"))
    for number, item in enumerate(study.items.all()):
        for position, person in enumerate(("Ann", "=Bob", "Cyd")):
            if (number + position) % 5:
                for index, question in enumerate(questions):
                    alpha = (number * 37 + position * 11 + index * 53) % 101
                    ratings = {"alpha": alpha, "beta": (alpha * 7 + position) % 101 / 3}
                    last = rate(study, person, item.key, ratings, question=question)
    doubt(last)
    rate(study, "Ann", "d0", {"alpha": 1, "beta": 99}, question="sense", round=2)
    return study


def agreement_of(path, where, capsys):
    capsys.readouterr()
    options = [option for each in where for option in ("--where", each)]
    columns = ["--item", "item", "--item", "candidate", "--annotator", "annotator"]
    columns += ["--value", "value", "--cluster", "item", "--level", "interval", "--json"]
    call_command("agreement", str(path), *columns, *options)
    content = json.loads(capsys.readouterr().out)
    return {row["name"]: row for row in content["coefficients"]}
