"""Pages have the people and studies of the console's tests."""

import pytest
from django.test import Client

from tests.console.conftest import *  # noqa: F403
from tests.console.conftest import _immediate_tasks  # noqa: F401


@pytest.fixture
def client() -> Client:
    """A browser, and no client of the marketplace."""
    return Client()
