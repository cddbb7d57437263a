import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.models import User
from accounts.teams import create_team


class Command(BaseCommand):
    help = "Make a team, whose owner is a user there is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--owner", required=True, metavar="USER")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, name: str, owner: str, **options: Any) -> None:
        team = create_team(name=name, owner=User.named(owner))
        if options["json"]:
            self.stdout.write(json.dumps({"team": team.slug, "owner": owner}))
        else:
            self.stdout.write(f"User {owner} owns team '{team}' ({team.slug}).")
