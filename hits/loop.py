"""The whole loop, from items in a study to judgments in it, through a marketplace."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from annotation.models import Study
from hits.collect import collect_batch
from hits.crowd.replay import ReplayResult
from hits.endpoints import AccessKey, connect
from hits.launch_plans import draft_batch, plan_batch
from hits.models import Assignment, Batch
from hits.publish import publish_batch
from hits.review import decide, send_decisions
from presentation.progress import Reporter, without_bars

Work = Callable[[Batch, str], ReplayResult]


@dataclass(frozen=True)
class Marketplace:
    """A worker site, and the key a requester uses at it."""

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
    """Publish a study, let `work` be done on it, collect and approve; nothing is done twice."""
    client = connect(key=marketplace.key, endpoint_url=marketplace.endpoint_url)
    batch = Batch.objects.of(study).first()
    if batch is None:
        draft = draft_batch(
            study=study,
            title=study.title,
            description=description,
            reward_usd=reward_usd,
            max_assignments=max_assignments,
        )
        batch = plan_batch(draft=draft).batch
    publish_batch(batch=batch, client=client, progress=reporter("publishing"))
    work(batch, marketplace.site_url)
    collect_batch(batch=batch, client=client, progress=reporter("collecting"))
    readable = Assignment.objects.of(batch).exclude(submission=None)
    decide(assignments=readable, decision=Assignment.Decision.APPROVE)
    send_decisions(batch=batch, client=client, progress=reporter("approving"))
    return batch
