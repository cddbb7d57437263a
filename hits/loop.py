"""The whole loop, from items in a study to judgments in it, through a marketplace; and the site in
this process, for commands that need a marketplace and find none running."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.servers.basehttp import (
    ThreadedWSGIServer,
    WSGIRequestHandler,
    get_internal_wsgi_application,
)
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.translation import gettext as _

from annotation.models import Study
from hits.collect import collect_batch
from hits.crowd.replay import ReplayResult
from hits.decisions import decide, send_decisions
from hits.endpoints import AccessKey, connect
from hits.exceptions import ConnectionUnfit, require
from hits.models import Assignment, Batch
from hits.plans import draft_batch, plan_batch
from hits.publications import publish_batch
from presentation.progress import Reporter, without_bars


class _QuietHandler(WSGIRequestHandler):
    # Head and body go out as two writes; held back for each other they cost 40 ms a request.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """The command that serves has its own report."""


@contextmanager
def served_site() -> Iterator[str]:
    # A site for others is not its own at that address: it refuses the host and asks for TLS.
    require(
        settings.OWN_MACHINE,
        ConnectionUnfit(
            _(
                "This command serves the site to itself at 127.0.0.1, and SITE_URL or "
                "ALLOWED_HOSTS says that others reach it by another name. Set both for this one "
                "command: SITE_URL=http://127.0.0.1:8000 ALLOWED_HOSTS=127.0.0.1 before it."
            ),
            code="not_local",
        ),
    )
    server = ThreadedWSGIServer(("127.0.0.1", 0), _QuietHandler)
    server.daemon_threads = True
    server.set_app(get_internal_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, name="site", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def prepare_database() -> None:
    if connection.vendor != "sqlite":
        return
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)


Work = Callable[[Batch, str], ReplayResult]


@dataclass(frozen=True)
class Marketplace:
    site_url: str
    key: AccessKey

    @property
    def endpoint_url(self) -> str:
        return f"{self.site_url}/requester"


def run_loop(
    *,
    study: Study,
    marketplace: Marketplace,
    reward_usd: Decimal,
    max_assignments: int,
    work: Work,
    description: str,
    reporter: Reporter = without_bars,
) -> Batch:
    client = connect(key=marketplace.key, endpoint_url=marketplace.endpoint_url)
    batch = Batch.objects.of(study).first()
    if batch is None:
        batch = plan_batch(
            draft=draft_batch(
                study=study,
                title=study.title,
                description=description,
                reward_usd=reward_usd,
                max_assignments=max_assignments,
            )
        ).batch
    publish_batch(batch=batch, client=client, progress=reporter("publishing"))
    work(batch, marketplace.site_url)
    collect_batch(batch=batch, client=client, progress=reporter("collecting"))
    decide(
        assignments=Assignment.objects.of(batch).exclude(submission=None),
        decision=Assignment.Decision.APPROVE,
    )
    send_decisions(batch=batch, client=client, progress=reporter("approving"))
    return batch
