"""How gunicorn runs where `serve` starts it; its own workers end with it."""

from work.parent import end_with_parent, end_with_supervisor

# As soon as this is read: loading the site takes seconds, and the supervisor may end meanwhile.
end_with_supervisor()


def post_fork(arbiter: object, worker: object) -> None:
    """Let no worker outlive the process that forked it."""
    end_with_parent()
