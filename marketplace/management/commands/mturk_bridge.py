import json
import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from marketplace.bridge.certificates import prepare_authority, server_context
from marketplace.bridge.proxy import Bridge, find_marketplace
from marketplace.exceptions import BridgeUnfit, require

TEXT = """The bridge leads Amazon's two MTurk names to {marketplace}.
In the shell of the program that was written for Amazon:

    export HTTPS_PROXY={HTTPS_PROXY}
    export AWS_CA_BUNDLE={AWS_CA_BUNDLE}

Its AWS key must be one of that marketplace's. Ctrl-C ends the bridge."""


class Command(BaseCommand):
    help = (
        "Lead programs that hard-code Amazon's MTurk endpoint to a marketplace of Assay's: a proxy "
        "on this machine alone, for Amazon's two names alone (docs/mturk-programs.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--marketplace",
            metavar="URL",
            default=settings.MARKETPLACE_ENDPOINT_URL,
            help="of a site or of its Requester API; by default that of the settings",
        )
        parser.add_argument("--port", type=_port, default=8443, help="on 127.0.0.1; 0: any")
        parser.add_argument(
            "--folder",
            type=Path,
            default=settings.BASE_DIR / "output" / "mturk_bridge",
            help="where the bridge keeps its certificate authority",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        # a shell that starts it in the background has it ignore SIGINT
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        marketplace = find_marketplace(options["marketplace"])
        authority, bundle = prepare_authority(options["folder"])
        context = server_context(authority)
        try:
            bridge = Bridge(
                options["port"],
                marketplace=marketplace,
                context=context,
                report=lambda line: self.stderr.write(line),
            )
        except OSError as error:
            reason = str(error.strerror).partition(" (")[0]
            problem = f"The bridge cannot listen on port {options['port']}: {reason}."
            raise BridgeUnfit(f"{problem} Give another --port.", code="port_in_use") from error
        facts = {
            "marketplace": marketplace.url,
            "HTTPS_PROXY": bridge.url,
            "AWS_CA_BUNDLE": str(bundle.resolve()),
        }
        self.stdout.write(json.dumps(facts) if options["json"] else TEXT.format(**facts))
        self.stdout.flush()
        with bridge:
            try:
                bridge.serve_forever()
            except KeyboardInterrupt:
                self.stderr.write("The bridge has ended.")


def _port(text: str) -> int:
    port = int(text)
    require(0 <= port < 65536, ValueError(text))
    return port


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
