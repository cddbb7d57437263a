"""Background work."""

from django_tasks import task

from marketplace import clock
from marketplace.hits import lifecycle


@task()
def sweep_marketplace() -> int:
    """Write down what time has done to HITs, and return to how many."""
    return lifecycle.sweep(clock.now())
