from tests.console.api.conftest import (  # noqa: F401
    _jobs_wait,
    program,
    reader,
    team_program,
)
from tests.console.conftest import (  # noqa: F401
    _immediate_tasks,
    collection,
    researcher,
    rosa,
    signed_in,
    stored_collection,
    stored_tracks,
    stored_users,
    team_users,
    tracks,
    users,
)
