"""Questions of labels collected elsewhere come in the order of the file's columns."""

from pathlib import Path

import pytest

from annotation.models import Study
from tests.annotation.importing import command_output

pytestmark = pytest.mark.django_db
MTURK = """\
HITId,WorkerId,AssignmentStatus,Input.text,Answer.tone,Answer.fit.no,Answer.fit.yes,Answer.ease
H1,A1,Approved,Hello.,,,,3
H1,A2,Approved,Hello.,2,false,true,4
H2,A1,Approved,Bye.,1,true,false,
"""


def test_questions_have_the_order_of_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text(MTURK)
    command_output("import_annotations", path, study="s", tool="mturk", response="text")
    names = Study.objects.get().questions.order_by("position").values_list("name", flat=True)
    assert list(names) == ["tone", "fit", "ease"]
