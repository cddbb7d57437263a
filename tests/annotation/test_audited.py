"""What is done in a team's study is in the team's audit log; what is done in nobody's is not."""

import pytest

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from annotation.adjudications import decide
from annotation.flags import flag_submissions, unflag_submissions
from annotation.label_sets import Rule, make_label_set
from annotation.models import Candidate, Submission
from tests.annotation.studies import rated_study
from tests.annotation.test_commands import exit_code

pytestmark = pytest.mark.django_db

CSV = "item,system,context,response\na,one,Hello?,Hi.\na,two,Hello?,Yes.\n"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def study(ada):
    return rated_study(owner=ada, team=create_team(name="Lab", owner=ada))


def last_entry(study):
    entry = AuditEntry.objects.of(study.team).first()
    return entry.action, entry.subject, entry.actor_name


@pytest.mark.slow
def test_flags_are_recorded(study, ada):
    flag_submissions(submissions=Submission.objects.of(study), reason="too fast", actor=ada)
    assert last_entry(study) == ("submission.flag", study.slug, "ada")
    n = Submission.objects.of(study).count()
    entry = AuditEntry.objects.of(study.team).first()
    assert entry.details == {"n_submissions": n, "reason": "too fast"}
    unflag_submissions(submissions=Submission.objects.of(study), actor=ada)
    assert last_entry(study) == ("submission.unflag", study.slug, "ada")
    # Nothing is recorded of a study without a team.
    n_entries, alone = AuditEntry.objects.count(), rated_study("alone", owner=ada)
    flag_submissions(submissions=Submission.objects.of(alone), reason="too fast", actor=ada)
    assert AuditEntry.objects.count() == n_entries


@pytest.mark.slow
def test_decisions_and_label_sets_are_recorded_once(study, ada):
    candidate = Candidate.objects.filter(item__study=study).first()
    for _ in range(2):
        decide(candidate=candidate, question=study.questions.get(), value=50, decided_by=ada)
    assert last_entry(study) == ("adjudication", study.slug, "ada")
    for _ in range(2):
        make_label_set(question=study.questions.get(), rule=Rule("mean"), created_by=ada)
    assert last_entry(study) == ("label_set", study.slug, "ada")
    actions = AuditEntry.objects.of(study.team).values_list("action", flat=True)
    assert (list(actions).count("adjudication"), list(actions).count("label_set")) == (1, 1)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_import_gives_a_study_to_the_team_that_it_names(ada, tmp_path, capsys):
    lab, other = create_team(name="Lab", owner=ada), create_team(name="Other", owner=ada)
    path = tmp_path / "responses.csv"
    path.write_text(CSV)
    arguments = ("import_responses", path, "--study", "new", "--team")
    assert exit_code(*arguments, "lab") == 0
    entries = AuditEntry.objects.of(lab).filter(subject="new")
    assert {entry.action for entry in entries} == {"study.team", "study.import"}
    n_entries = AuditEntry.objects.count()
    assert exit_code(*arguments, "lab") == 0
    assert AuditEntry.objects.count() == n_entries
    assert exit_code(*arguments, "other") == 2
    assert exit_code(*arguments, "nobody") == 2
    assert "lab, other" in capsys.readouterr().err
    assert not AuditEntry.objects.of(other).filter(subject="new").exists()
