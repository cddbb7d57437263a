from tests.console.api.conftest import *  # noqa: F403
from tests.console.api.conftest import _jobs_wait  # noqa: F401
from tests.console.conftest import *  # noqa: F403
from tests.console.conftest import _immediate_tasks  # noqa: F401
