from tests.console.conftest import *  # noqa: F403
from tests.console.conftest import _immediate_tasks  # noqa: F401
