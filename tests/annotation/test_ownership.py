import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from annotation.exceptions import StudyUnfit, StudyUnknown
from annotation.models import Study
from tests.codes import refused, refused_naming

pytestmark = pytest.mark.django_db
RESPONSES = "item,system,context,response\nd0,alpha,Hello?,Hi.\nd0,beta,Hello?,Yo.\n"


@pytest.fixture
def users():
    create = get_user_model().objects.create_user
    return create(username="grace"), create(username="ada")


@pytest.fixture
def responses(tmp_path):
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    return path


def run(command, *arguments, **options):
    output, errors = io.StringIO(), io.StringIO()
    call_command(command, *arguments, stdout=output, stderr=errors, **options)
    return output.getvalue(), errors.getvalue()


def test_an_import_that_names_no_owner_says_how_to_give_one(responses, users):
    grace, _ = users
    _, errors = run("import_responses", str(responses), study="orphan")
    assert "assign_owner orphan USER" in errors
    assert not Study.objects.visible_to(grace).exists()
    run("assign_owner", "orphan", "grace")
    assert Study.objects.visible_to(grace).get().slug == "orphan"
    assert run("import_responses", str(responses), study="orphan")[1] == ""
    assert run("import_responses", str(responses), study="hers", owner="grace")[1] == ""


def test_an_owner_is_replaced_only_when_that_is_said(users):
    grace, ada = users
    Study.objects.create(slug="s", title="S", kind=Study.Kind.RATING, owner=grace)
    with refused(StudyUnknown, slug="none"):
        run("assign_owner", "none", "grace")
    with refused_naming(CommandError, "'nobody'"):
        run("assign_owner", "s", "nobody")
    with refused(StudyUnfit, "has_owner") as caught:
        run("assign_owner", "s", "ada")
    assert all(named in str(caught.value) for named in ("'grace'", "--replace"))
    assert Study.objects.get().owner == grace
    run("assign_owner", "s", "grace")
    output, _ = run("assign_owner", "s", "ada", replace=True)
    assert all(named in output for named in ("'ada'", "'grace'"))
    assert Study.objects.get().owner == ada
