from typing import Any

from marketplace.api.outputs import block_output
from marketplace.api.pagination import page_of
from marketplace.api.registry import Parameters, operation
from marketplace.models import Requester, WorkerBlock
from marketplace.people import blocks, messages
from marketplace.recruiting import intents


@operation("CreateWorkerBlock")
def create_worker_block(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Take no more work from a worker."""
    blocks.block_worker(
        requester=requester, worker_id=parameters["WorkerId"], reason=parameters["Reason"]
    )
    return {}


@operation("DeleteWorkerBlock")
def delete_worker_block(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Take work from a worker again."""
    blocks.unblock_worker(requester=requester, worker_id=parameters["WorkerId"])
    return {}


@operation("ListWorkerBlocks")
def list_worker_blocks(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Whom the requester has blocked."""
    return page_of(
        WorkerBlock.objects.filter(requester=requester).select_related("worker"),
        f"ListWorkerBlocks:{requester.pk}",
        parameters,
        member="WorkerBlocks",
        describe=block_output,
    )


@operation("NotifyWorkers")
def notify_workers(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Write to workers the requester knows."""
    message = {"subject": parameters["Subject"], "text": parameters["MessageText"]}
    others = intents.request_messages(
        requester=requester, worker_ids=parameters["WorkerIds"], **message
    )
    undelivered = messages.notify_workers(requester=requester, worker_ids=others, **message)
    failures = [
        {
            "NotifyWorkersFailureCode": "HardFailure",
            "NotifyWorkersFailureMessage": each.reason,
            "WorkerId": each.worker_id,
        }
        for each in undelivered
    ]
    return {"NotifyWorkersFailureStatuses": failures}
