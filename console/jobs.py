from django.utils.translation import gettext as _, gettext_lazy

from console.api.operations import delete_old_answers
from work.execution import RunningJob
from work.registry import MARKETPLACE, register


@register(
    "delete_stored_answers",
    label=gettext_lazy("Deleting stored answers of the API"),
    queue=MARKETPLACE,
    every_seconds=3600,
)
def delete_stored_answers(running: RunningJob) -> str:
    return _("Answers deleted: {n}.").format(n=delete_old_answers())
