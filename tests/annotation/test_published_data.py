import re
from pathlib import Path

import pytest
from django.db.models import Count

from annotation.frames import judgment_frame
from annotation.models import Candidate, Judgment, Study, Submission
from tests.annotation.importing import command_output, numbers_in

pytestmark = [pytest.mark.django_db, pytest.mark.shared_data]


@pytest.fixture
def lmstyle(shared_data: Path) -> Study:
    source = shared_data / "lmstyle" / "mturk_batch_results.csv"
    options = {"context": "Speaker", "condition": "task", "item": ["dataset", "task", "HIT"]}
    output = command_output("import_mturk_batch", source, study="lmstyle", **options)
    assert numbers_in(output)[:2] == [397, 426]
    return Study.objects.named("lmstyle")


def test_the_lmstyle_batch_becomes_a_rating_study(lmstyle):
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
