"""Test collections on their pages: made, linked to studies, deleted."""

import pytest
from django.urls import reverse

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from retrieval.collections import create_collection
from retrieval.models import Collection
from tests.annotation.studies import ticked_study
from tests.console.collection_addresses import address_of as address
from tests.console.pages import words_of
from tests.retrieval.collections import add_file, qrels_text, run_text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MOST_STATEMENTS = 17


@pytest.fixture
def team(researcher):
    return create_team(name="Lab", owner=researcher)


@pytest.fixture
def collection(researcher, team):
    return create_collection(name="Tracks", team=team, actor=researcher)


def test_a_collection_is_made_by_a_form_and_written_into_the_log(rosa, team):
    answer = rosa.post("/new-collection/", {"name": "Shoes 2026", "team": team.pk})
    assert answer.url == "/collections/shoes-2026/files/"
    row = Collection.objects.get()
    assert (row.name, row.team, row.created_by.username) == ("Shoes 2026", team, "rosa")
    assert AuditEntry.objects.filter(action="collection.create", subject="shoes-2026").exists()


def test_two_collections_of_one_name_have_two_addresses(rosa, team):
    for _ in range(2):
        rosa.post("/new-collection/", {"name": "Shoes", "team": team.pk})
    assert set(Collection.objects.values_list("slug", flat=True)) == {"shoes", "shoes-2"}


def test_a_collection_without_a_name_or_in_anothers_team_is_not_made(rosa, team, colleague):
    other = create_team(name="Other", owner=colleague)
    for form in ({"name": "", "team": team.pk}, {"name": "Shoes", "team": other.pk}):
        answer = rosa.post("/new-collection/", form)
        assert answer.status_code == 422
    assert not Collection.objects.exists()


def test_who_is_in_no_team_is_sent_to_make_one(rosa):
    page = rosa.get("/new-collection/").content.decode()
    assert f'href="{reverse("console:teams")}' in page
    assert 'name="team"' not in page


def test_studies_of_the_team_are_linked_and_others_are_not(rosa, researcher, team, collection):
    ours = ticked_study(owner=researcher, team=team)
    theirs = ticked_study("theirs", owner=researcher)
    rosa.post(address("collection-studies"), {"studies": [theirs.pk]})
    assert not collection.studies.exists()
    rosa.post(address("collection-studies"), {"studies": [ours.pk]})
    assert list(collection.studies.all()) == [ours]
    assert ours.title in words_of(rosa.get(address("collection")).content.decode())


def test_a_collection_is_deleted_when_its_short_name_is_typed(rosa, collection):
    assert rosa.post(address("collection-delete"), {"name": "track"}).status_code == 422
    assert Collection.objects.exists()
    assert rosa.post(address("collection-delete"), {"name": "tracks"}).url == "/collections/"
    assert not Collection.objects.exists()
    assert AuditEntry.objects.filter(action="collection.delete", subject="tracks").exists()


def next_step_of(rosa):
    """The page of the next step, after the collection's address."""
    return rosa.get(address("collection")).context["step"].url.removeprefix("/collections/tracks/")


def test_the_overview_says_the_next_step_at_each_stage(rosa, researcher, collection):
    assert next_step_of(rosa) == "files/"
    for tag in ("dense", "bm25"):
        add_file(collection, f"{tag}.run", run_text(tag))
    assert next_step_of(rosa) == "pools/"
    add_file(collection, "bad.run", "t1 Q0 d1 1 high x\n", kind="run")
    assert next_step_of(rosa) == "files/"
    collection.files.filter(file_name="bad.run").delete()
    study = ticked_study(owner=researcher, team=collection.team)
    collection.studies.add(study)
    assert next_step_of(rosa) == "judgments/"
    add_file(collection, "q.txt", qrels_text())
    assert next_step_of(rosa) == "evaluation/"


def test_a_followed_job_says_of_no_slug_whether_a_collection_has_it(client, researcher):
    create_collection(
        name="Secret", team=create_team(name="Lab", owner=researcher), actor=researcher
    )
    client.force_login(User.objects.create_user("stranger"))
    for slug in ("secret", "nothing"):
        address = f"/collections/{slug}/work/1/"
        answer = client.get(address, headers={"HX-Request": "true"})
        assert (answer.status_code, answer["HX-Redirect"]) == (200, "/collections/")
        assert client.get(address).status_code == 404
