"""What happens by time to the site as a whole."""

from django.utils import timezone
from django.utils.translation import gettext_lazy

from config.retention import delete_expired
from work.execution import RunningJob
from work.registry import MARKETPLACE, register


@register(
    "delete_expired",
    label=gettext_lazy("Deleting what is kept no longer"),
    queue=MARKETPLACE,
    every_seconds=24 * 3600,
)
def delete_what_expired(running: RunningJob) -> str:
    """Delete by the rules of retention."""
    n = sum(n_deleted for _rule, n_deleted in delete_expired(timezone.now()))
    return f"{n} row{'' if n == 1 else 's'} deleted."
