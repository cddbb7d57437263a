from django import template

from marketplace.models import WorkerAccount, WorkerMessage

register = template.Library()


@register.simple_tag
def unread(worker: WorkerAccount) -> int:
    """How many messages a worker hasn't read."""
    return WorkerMessage.objects.filter(worker=worker, read_at=None).count()
