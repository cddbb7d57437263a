"""Pages have the people and studies of the console's tests."""

from tests.console.conftest import *  # noqa: F403
from tests.console.conftest import _immediate_tasks  # noqa: F401
