"""How gunicorn runs where `serve` starts it; its own workers end with it."""

import contextlib
import os
import shutil
import tempfile
from typing import Any

from django.urls import get_resolver

from lazy_views import import_views
from work.supervision import end_with_parent, end_with_supervisor

# As soon as this is read: loading the site takes seconds, and the supervisor may end meanwhile.
end_with_supervisor()

# Its socket for commands is in the user's folder, one for all sites of a user; systemd and
# containers start and stop it here.
control_socket_disable = True

# Where the processes add up what they count, so that whichever is asked for /metrics answers for
# all of this machine. Before the library is loaded, which looks once.
COUNTS = "PROMETHEUS_MULTIPROC_DIR"
own_folder = None
if COUNTS not in os.environ:
    # A disk that cannot be written to is no reason not to start: each process counts for itself.
    with contextlib.suppress(OSError):
        own_folder = os.environ[COUNTS] = tempfile.mkdtemp(prefix="assay-metrics-")


def when_ready(arbiter: Any) -> None:
    """Import all pages before several processes are forked: they share the memory."""
    if arbiter.cfg.preload_app and arbiter.cfg.workers > 1:
        import_views(get_resolver().url_patterns)


def post_fork(arbiter: object, worker: object) -> None:
    end_with_parent()


def on_exit(arbiter: object) -> None:
    if own_folder:
        shutil.rmtree(own_folder, ignore_errors=True)
