"""A stateful fake of Prolific's API on this machine: ``python -m benchmarks.fake_prolific``."""

import argparse
import json
import secrets
import signal
import sys

from benchmarks.fake_prolific.server import FakeProlific

TEXT = """A fake of Prolific serves at {url} with the token {token}.
Its workspace is {workspace}, with the project {project}.
Its participants, clock and faults are moved by POST to {url}/driver/arrive/ and the like
(docs/recruiting.md). Ctrl-C ends it, and forgets everything."""


def main() -> None:
    options = _options()
    # A shell that starts it in the background has it ignore SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
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
    text = json.dumps(facts) if options.json else TEXT.format(**facts)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    with fake:
        try:
            fake.thread.join()
        except KeyboardInterrupt:
            sys.stderr.write("The fake has ended.\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8460, help="on 127.0.0.1; 0: any")
    parser.add_argument("--deposit", type=int, default=100_000, help="in pence")
    parser.add_argument("--token", default="", help="by default a random one")
    parser.add_argument(
        "--lenient", action="store_true", help="Do not check requests against the schema."
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    return parser.parse_args()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
