"""The research data beside the checkout, through the commands a researcher would run."""

import re
from pathlib import Path

import pytest
from django.db.models import Count

from annotation.frames import judgment_frame
from annotation.models import Candidate, Judgment, Study, Submission
from tests.annotation.importing import command_output, everything

pytestmark = [pytest.mark.django_db, pytest.mark.shared_data]


@pytest.mark.parametrize(
    ("release", "imported", "repairs", "exported"),
    [
        (
            "shoes",
            "200 items and 200 submissions",
            [
                "76 rows showed a picture more than once: 91 surplus slots merged, "
                "relevant if ticked in either",
                "40 rows listed the target among its own candidates: dropped",
            ],
            "200 topics, 2,669 lines, 441 relevant",
        ),
        (
            "dresses",
            "197 items and 197 submissions",
            [
                "52 rows showed a picture more than once: 65 surplus slots merged, "
                "relevant if ticked in either",
                "11 rows listed the target among its own candidates: dropped",
                "2 rows without judgments: left out",
            ],
            "197 topics, 2,682 lines, 440 relevant",
        ),
    ],
)
def test_fashion_altereval_becomes_qrels(
    shared_data: Path,
    tmp_path: Path,
    release: str,
    imported: str,
    repairs: list[str],
    exported: str,
) -> None:
    source = shared_data / "altereval" / f"judged_targets_{release}.csv"
    output = command_output("import_altereval", source, study=release).splitlines()
    assert output == [
        f"Study '{release}': {imported} imported.",
        *(f"Repaired: {repair}." for repair in repairs),
    ]
    path = tmp_path / "qrels.txt"
    sentence = command_output("export_qrels", release, output=path)
    assert sentence == f"{path}: {exported} (majority, round 1).\n"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"\S+ 0 \S+ [01]", line) for line in lines)
    pairs = [tuple(line.split()[::2]) for line in lines]
    assert len(set(pairs)) == len(pairs)
    assert not [topic for topic, docno in pairs if topic == docno]


def test_fashion_altereval_twice_changes_nothing(shared_data: Path) -> None:
    source = shared_data / "altereval" / "judged_targets_dresses.csv"
    command_output("import_altereval", source, study="dresses")
    before = everything()
    output = command_output("import_altereval", source, study="dresses")
    assert output.startswith("Study 'dresses': 0 items (197 more were there already) and 0 subm")
    assert everything() == before


@pytest.fixture
def lmstyle(shared_data: Path) -> Study:
    source = shared_data / "lmstyle" / "mturk_batch_results.csv"
    output = command_output(
        "import_mturk_batch",
        source,
        study="lmstyle",
        context="Speaker",
        condition="task",
        item=["dataset", "task", "HIT"],
    )
    assert output.startswith("Study 'lmstyle': 397 items and 426 submissions imported.")
    return Study.objects.named("lmstyle")


def test_the_lmstyle_batch_becomes_a_rating_study(lmstyle: Study) -> None:
    statuses = Submission.objects.order_by("status").values_list("status").annotate(Count("pk"))
    assert list(statuses) == [("approved", 397), ("rejected", 29)]
    assert Candidate.objects.count() == 397 * 4
    assert set(lmstyle.questions.values_list("name", flat=True)) == {"Appropriateness", "Style"}
    assert Judgment.objects.count() == 426 * 8
    frame = judgment_frame(lmstyle)
    assert len(frame) == 397 * 8
    assert frame["value"].between(0, 100).all()
    assert set(frame["system"]) == {"vicuna13b", "vicuna7b", "llama7b", "llama13b"}
    assert frame["annotator"].nunique() <= 4


def test_the_lmstyle_batch_names_no_worker(lmstyle: Study) -> None:
    text = judgment_frame(lmstyle, accepted=False).to_csv()
    raws = "".join(Submission.objects.values_list("raw", flat=True))
    names = Submission.objects.values_list("annotator__pseudonym", flat=True)
    assert not re.search(r"\bW\d\d\b", text + raws + "".join(names))
    assert all(re.fullmatch("A[0-9a-f]{10}", name) for name in names)


def test_the_lmstyle_batch_keeps_its_times_in_utc(lmstyle: Study) -> None:
    first = Submission.objects.order_by("pk")[0]
    assert first.accepted_at is not None
    assert first.accepted_at.isoformat() == "2023-06-16T06:58:10+00:00"
    assert first.seconds == 174
