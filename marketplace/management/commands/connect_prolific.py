import json
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.exceptions import first_or_raise, require
from marketplace.models import Requester
from marketplace.recruiting.connections import connect_prolific


class Command(BaseCommand):
    help = (
        "Connect a requester with a workspace at Prolific. The token is read from the environment "
        "(PROLIFIC_TOKEN), tried, and kept encrypted (docs/recruiting.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("requester", help="The requester's name, as workers see it.")
        parser.add_argument("--workspace", required=True, help="its id at Prolific")
        parser.add_argument("--project", default="", help="the id of the project for new studies")
        parser.add_argument("--name", default="Prolific", help="what the connection is called")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        token = os.environ.get("PROLIFIC_TOKEN", "")
        require(
            token, CommandError("Put Prolific's API token into the environment as PROLIFIC_TOKEN.")
        )
        connection, account = connect_prolific(
            requester=first_or_raise(
                Requester.objects.filter(name=options["requester"]),
                CommandError(f"There is no requester {options['requester']}."),
            ),
            name=options["name"],
            token=token,
            workspace=options["workspace"],
            project=options["project"],
        )
        facts = {
            "connection": connection.name,
            "account": account.name,
            "available": str(account.available),
            "currency": account.currency,
        }
        text = "{connection} is connected: {account}, {available} {currency} available."
        self.stdout.write(json.dumps(facts) if options["json"] else text.format(**facts))
