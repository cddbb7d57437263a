import json
import os

import pytest
from django.core.management import call_command

from annotation import exceptions, models
from hits.collect import collect_batch
from hits.models import Assignment, Worker
from hits.studies import NAMES, submission_rows
from presentation.files import FileUnwritable
from presentation.row_files import row_csv, row_jsonl
from tests.annotation.studies import doubt
from tests.codes import refused_naming
from tests.hits.work import hand_in, hit_on, published_batch

pytestmark = pytest.mark.django_db
COMMENT = '=HYPERLINK("http://a.example", "The second picture is broken for me!")'
REASON = '- too dark,\n\'- too small\r\nand "odd" ☂'


def test_a_record_holds_all_but_the_judgments_and_names_no_worker(submissions_of_two, tmp_path):
    path = tmp_path / "submissions.jsonl"
    call_command("export_submissions", "ratings", output=path)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records == [json.loads(line) for line in row_jsonl(submission_rows(submissions_of_two))]
    assert Worker.objects.count() == 2
    assert not [one.worker_id for one in Worker.objects.all() if one.worker_id in path.read_text()]
    silent, with_comment = sorted(records, key=lambda record: record["comment"])
    assignment = Assignment.objects.get(submission__comment=COMMENT)
    assert with_comment == {
        **{"study": "ratings", "round": 1, "item": "d0", "condition": "", "protocol": 1},
        "annotator": assignment.submission.annotator.pseudonym,
        **{"hit_id": assignment.hit.hit_id, "assignment_id": assignment.assignment_id},
        "accepted_at": assignment.accepted_at.isoformat(),
        "submitted_at": assignment.submitted_at.isoformat(),
        **{"seconds": assignment.submission.seconds, "active_seconds": 7.25, "pasted": True},
        **{"justification": REASON, "comment": COMMENT, "status": "submitted"},
        **{"flagged": True, "flag_reason": "too fast", "consented_at": None},
        **{"simulated": False, "shown_order": '["alpha", "beta"]'},
    }
    assert (silent["status"], silent["comment"], silent["flagged"]) == ("rejected", "", False)
    assert (silent["active_seconds"], silent["pasted"]) == (None, False)


@pytest.fixture
def submissions_of_two(study, client, ann, bob):
    batch = published_batch(study, client, max_assignments=2)
    remarks = {"comment": COMMENT, "justification": REASON, "pasted": True, "active_seconds": 7.25}
    hand_in(ann, hit_on(batch, "d0"), {"alpha": 30, "beta": 70}, **remarks)
    second = hand_in(bob, hit_on(batch, "d0"), {"alpha": 1, "beta": 2}, active_seconds=None)
    client.reject_assignment(AssignmentId=second, RequesterFeedback="One second for two.")
    collect_batch(batch=batch, client=client)
    doubt(models.Submission.objects.get(comment=COMMENT))
    return study


def test_what_cannot_be_written_leaves_nothing(study, tmp_path):
    assert "".join(row_csv(submission_rows(study))) == ",".join(NAMES) + "\n"
    with refused_naming(exceptions.AnnotationError, "nobody"):
        call_command("export_submissions", "nobody", output=tmp_path / "a.csv")
    with pytest.raises(FileUnwritable):
        call_command("export_submissions", "ratings", output=tmp_path)
    assert os.listdir(tmp_path) == []
