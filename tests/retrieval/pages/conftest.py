import pytest

from accounts.teams import create_team
from retrieval.collections import create_collection
from tests.console.conftest import *  # noqa: F403
from tests.console.conftest import _immediate_tasks  # noqa: F401


@pytest.fixture
def empty_collection(researcher):
    team = create_team(name="Lab", owner=researcher)
    return create_collection(name="Tracks", team=team, actor=researcher)
