"""The background worker, where a test wants it to work."""

from django.core.management import call_command


def work_off() -> None:
    """What the background worker does with all that waits."""
    call_command("db_worker", batch=True, startup_delay=False, verbosity=0, queue_name="*")
