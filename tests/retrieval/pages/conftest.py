"""The fixtures of pages: a browser of the researcher, and collections of her team."""

from tests.console.conftest import (  # noqa: F401
    _immediate_tasks,
    colleague,
    collection,
    researcher,
    rosa,
    shoes,
    signed_in,
    stored_collection,
    stored_shoes,
    stored_tracks,
    stored_users,
    team_users,
    tracks,
)
