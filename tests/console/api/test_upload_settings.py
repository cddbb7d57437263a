import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.roles import Role, Scope
from annotation.models import Candidate, Study, Upload
from metrics.models import Score, ScoringRun
from tests.console.api.conftest import program_of
from tests.console.api.test_writing import done

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
UPLOADS = "/api/v1/uploads/"
LABELS = (
    b"doc;rater;criterion;rating;system;output\n"
    b"d1;Ann Lee;style;4;alpha;Hello\nd1;Bob Ray;style;5;alpha;Hello\n"
    b"d2;Ann Lee;style;2;beta;Bye\nd2;Bob Ray;style;2;beta;Bye\n"
)


def send(program, body, name, **fields):
    return program.post(UPLOADS, {"file": SimpleUploadedFile(name, body), **fields})


def send_labels(program):
    return done(send(program, LABELS, "labels.csv", content="labels", title="Elsewhere"), 201)


def scores_of(study):
    rows = [
        f"{item.key},{candidate.system},{number / 4}"
        for item in study.items.all()
        for number, candidate in enumerate(item.candidates.all())
    ]
    return "\n".join(["item,system,bleurt", *rows]).encode()


@pytest.mark.parametrize("content", [{"content": "scores", "study": "mine"}, {"title": "New"}])
def test_what_no_database_keeps_is_replaced_where_a_file_is_displayed(study, program, content):
    body = b"item,system,score\nd1\x00,a,1\n"
    assert done(send(program, body, "nul.csv", **content), 201)["columns"][0]["first"] == "d1\ufffd"
    assert "\x00" not in str(Upload.objects.get().sample)


def test_what_is_said_of_labels_fits_the_file_or_keeps_it_from_being_imported(study, program):
    where = f"{UPLOADS}{send_labels(program)['token']}/"
    for said, field in (
        ({"uses": {"nothing": "item"}}, "uses"),
        ({"uses": {"doc": "other"}}, "uses.doc"),
        ({"questions": {"unasked": {"level": "ordinal"}}}, "questions"),
        ({"questions": {"style": {"low": 5, "high": 1}}}, "questions.style.low"),
        ({"tool": "none"}, "tool"),
        ({"other": 1}, "other"),
    ):
        answer = program.send("put", f"{where}label-settings/", said)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    for name, said in (("mapping", {"uses": {}}), ("score-settings", {})):
        answer = program.send("put", f"{where}{name}/", said)
        assert answer.status_code == 409
    changed = done(program.send("put", f"{where}label-settings/", {"uses": {"doc": "item"}}), 202)
    assert changed["problems"]
    answer = program.send("post", f"{where}import/", {})
    assert answer.json()["errors"]["mapping"] == changed["problems"]
    assert Study.objects.count() == 1


@pytest.mark.slow
def test_scores_are_sent_mapped_and_imported(study, users):
    program = program_of(users["analyst"], "write")
    sent = send(program, scores_of(study), "scores.csv", content="scores", study="mine")
    upload = done(sent, 201)
    assert upload["score_settings"]["uses"]["bleurt"] == "score"
    where = f"{UPLOADS}{upload['token']}/"
    said = {"lower": ["bleurt"], "signature": "bleurt|v:2"}
    changed = done(program.send("put", f"{where}score-settings/", said), 202)
    n_candidates = Candidate.objects.filter(item__study=study).count()
    assert (changed["problems"], changed["summary"]["n_scores"]) == ([], n_candidates)
    done(program.send("post", f"{where}import/", {}), 202)
    run = ScoringRun.objects.get(metric="bleurt")
    assert (run.signature, run.higher_is_better) == ("bleurt|v:2", False)
    assert Score.objects.filter(run=run).count() == n_candidates


def test_who_may_import_scores_and_labels(study, users, team_program):
    for person, scopes, status in (
        ("adjudicator", ["write"], 403),
        ("analyst", [], 403),
        ("other_team", ["write"], 404),
    ):
        program = program_of(users[person], *scopes)
        sent = send(program, scores_of(study), "scores.csv", content="scores", study="mine")
        assert sent.status_code == status
    assert not Upload.objects.exists()
    program = team_program(Role.RESEARCHER, Scope.WRITE)
    assert Upload.objects.get(token=send_labels(program)["token"]).team == study.team


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"content": "scores", "title": "New"}, "study"),
        ({"content": "labels", "study": "mine"}, "content"),
        ({"content": "labels", "title": "New", "template": "preference"}, "content"),
        ({"content": "items", "title": "New", "tool": "argilla"}, "tool"),
    ],
)
def test_what_fits_no_file_is_refused(study, program, fields, field):
    answer = send(program, LABELS, "labels.csv", **fields)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
