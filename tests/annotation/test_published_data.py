"""The research data beside the checkout, through the commands a researcher would run."""

import re
from pathlib import Path

import pytest
from django.db.models import Count

from annotation.frames import judgment_frame
from annotation.models import Candidate, Judgment, Study, Submission
from tests.annotation.importing import command_output, everything, numbers_in

pytestmark = [pytest.mark.django_db, pytest.mark.shared_data]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "counts"),
    [
        ("shoes", [[200, 200], [76, 91], [40], [200, 2669, 441, 1]]),
        ("dresses", [[197, 197], [52, 65], [11], [2], [197, 2682, 440, 1]]),
    ],
)
def test_fashion_altereval_becomes_qrels(
    shared_data: Path, tmp_path: Path, release: str, counts: list[list[int]]
) -> None:
    source = shared_data / "altereval" / f"judged_targets_{release}.csv"
    output = command_output("import_altereval", source, study=release).splitlines()
    path = tmp_path / "qrels.txt"
    sentence = command_output("export_qrels", release, output=path).removeprefix(str(path))
    assert [numbers_in(line) for line in (*output, sentence)] == counts
    before = everything()
    command_output("import_altereval", source, study=release)
    assert everything() == before
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"\S+ 0 \S+ [01]", line) for line in lines)
    pairs = [tuple(line.split()[::2]) for line in lines]
    assert len(set(pairs)) == len(pairs)
    assert not [topic for topic, docno in pairs if topic == docno]


@pytest.fixture
def lmstyle(shared_data: Path) -> Study:
    source = shared_data / "lmstyle" / "mturk_batch_results.csv"
    options = {"context": "Speaker", "condition": "task", "item": ["dataset", "task", "HIT"]}
    output = command_output("import_mturk_batch", source, study="lmstyle", **options)
    assert numbers_in(output)[:2] == [397, 426]
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
    text = judgment_frame(lmstyle, accepted=False).to_csv()
    raws = "".join(Submission.objects.values_list("raw", flat=True))
    names = Submission.objects.values_list("annotator__pseudonym", flat=True)
    assert not re.search(r"\bW\d\d\b", text + raws + "".join(names))
    assert all(re.fullmatch("A[0-9a-f]{10}", name) for name in names)
    first = Submission.objects.order_by("pk")[0]
    assert first.accepted_at is not None
    assert first.accepted_at.isoformat() == "2023-06-16T06:58:10+00:00"
    assert first.seconds == 174
