"""A stateful fake of Prolific's API on this machine: ``python -m benchmarks.fake_prolific``."""

import json
import secrets
import signal
import sys

from benchmarks.commands import parse_options, say
from benchmarks.fake_prolific.server import FakeProlific

TEXT = """A fake of Prolific serves at {url} with the token {token}.
Its workspace is {workspace}, with the project {project}.
Its participants, clock and faults are moved by POST to {url}/driver/arrive/ and the like
(docs/recruiting.md). Ctrl-C ends it, and forgets everything."""


def main() -> None:
    options = parse_options(
        __doc__,
        port=(8460, "on 127.0.0.1; 0: any"),
        deposit=(100_000, "in pence"),
        token=("", "by default a random one"),
        lenient=(False, "Do not check requests against the schema."),
        json=(False, "Print one JSON object."),
    )
    # A shell that starts it in the background has it ignore SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    fake = FakeProlific(
        options.port,
        token=options.token or secrets.token_urlsafe(16),
        deposit=options.deposit,
        strict=not options.lenient,
        sends_events=True,
    )
    facts = {
        "url": fake.url,
        "token": fake.token,
        "workspace": fake.world.workspace,
        "project": fake.world.project,
    }
    say(json.dumps(facts) if options.json else TEXT.format(**facts))
    with fake:
        try:
            fake.thread.join()
        except KeyboardInterrupt:
            sys.stderr.write("The fake has ended.\n")


if __name__ == "__main__":
    main()
