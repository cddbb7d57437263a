import pytest
from django.test import Client, override_settings
from django.urls import reverse

from accounts import models, teams
from annotation.models import Study
from marketplace.people.enrolment import create_worker
from retrieval.models import Collection
from simulation.models import StoredExperiment, StoredRecommender
from simulation.stored_experiments import request_run
from tests.console import pages, work
from tests.console.team_study import create_study, create_users
from tests.retrieval.collections import evaluated_collection, filled_collection
from tests.simulation.stored import RULES, stored_experiment, trained_recommender

PASSWORD = "a-long-and-winding-password"


@pytest.fixture
def researcher(db):
    stored = models.User.objects.filter(username="rosa").first()
    return stored or models.User.objects.create_user("rosa", password=PASSWORD)


@pytest.fixture(scope="module")
def stored_users(stored_for_module):
    """Rosa's team with somebody in each role, and strangers to it, for all tests of a module."""
    return create_users(models.User.objects.create_user("rosa", password=PASSWORD))


@pytest.fixture(scope="module")
def stored_study(stored_users):
    with override_settings(TASKS=work.AT_ONCE):
        return create_study(stored_users["owner"])


@pytest.fixture
def team_users(stored_users, db):
    users = models.User.objects.in_bulk([user.pk for user in stored_users.values()])
    return {role: users[user.pk] for role, user in stored_users.items()}


@pytest.fixture
def team_study(stored_study, db):
    return Study.objects.get(pk=stored_study.pk)


users, study = team_users, team_study  # their names within the console's tests


@pytest.fixture(scope="module")
def stored_shoes(stored_users):
    owner = stored_users["owner"]
    experiment = stored_experiment(owner.memberships.get().team, owner)
    with override_settings(TASKS=work.AT_ONCE):
        request_run(experiment=experiment, rules=RULES, actor=owner)
    return experiment


@pytest.fixture
def shoes(stored_shoes, db):
    return StoredExperiment.objects.get(pk=stored_shoes.pk)


@pytest.fixture(scope="module")
def stored_recommender(stored_users):
    owner = stored_users["owner"]
    with override_settings(TASKS=work.AT_ONCE):
        return trained_recommender(owner.memberships.get().team, owner)


@pytest.fixture
def recommender(stored_recommender, db):
    return StoredRecommender.objects.get(pk=stored_recommender.pk)


@pytest.fixture(scope="module")
def stored_collection(stored_for_module):
    """Runs and qrels of Rosa's team of which nothing is computed, for all tests of a module."""
    owner = models.User.objects.create_user("rosa", password=PASSWORD)
    return filled_collection(teams.create_team(name="Lab", owner=owner), owner)


@pytest.fixture
def collection(stored_collection, db):
    return Collection.objects.get(pk=stored_collection.pk)


@pytest.fixture(scope="module")
def stored_tracks(stored_users):
    """A collection of the team with every result, for all tests of a module."""
    owner = stored_users["owner"]
    with override_settings(TASKS=work.AT_ONCE):
        return evaluated_collection(owner.memberships.get().team, owner)


@pytest.fixture(scope="module")
def stored_things(stored_tracks, stored_shoes, stored_recommender, stored_study):
    """A team's collection, experiment, recommender and study; the study's rows are the newest."""


@pytest.fixture
def things(stored_things, db):
    """All that a team can have, for tests of every address."""


@pytest.fixture
def tracks(stored_tracks, db):
    return Collection.objects.get(pk=stored_tracks.pk)


@pytest.fixture
def colleague(db):
    return models.User.objects.create_user("carl", password=PASSWORD)


@pytest.fixture
def superuser(db):
    return models.User.objects.create_superuser("root", password=PASSWORD)


@pytest.fixture
def worker(db):
    return create_worker(username="ada", password=PASSWORD).user


def browser(user):
    client = Client(headers={"host": "localhost"})
    if user is not None:
        client.force_login(user)
    return client


@pytest.fixture
def signed_in():
    return browser


@pytest.fixture
def rosa(researcher, signed_in):
    return signed_in(researcher)


@pytest.fixture
def page_text(rosa):
    def page(study, name="study", **query):
        answer = rosa.get(reverse(f"console:{name}", args=[study.slug]), query)
        assert answer.status_code == 200
        return pages.words_of(answer.content.decode())

    return page


@pytest.fixture
def fetch_picture(rosa):
    def fetch_file(name, study, chart, form, **query):
        return rosa.get(reverse(f"console:{name}", args=[study.slug, chart, form]), query)

    return fetch_file


@pytest.fixture
def _immediate_tasks(settings):
    settings.TASKS = work.AT_ONCE
