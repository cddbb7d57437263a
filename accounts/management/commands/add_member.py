import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.models import Team, User
from accounts.roles import Role
from accounts.teams import set_role


class Command(BaseCommand):
    help = "Make a user a member of a team, or a member something else."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("team", metavar="TEAM", help="its short name (slug)")
        parser.add_argument("user", metavar="USER")
        parser.add_argument("--role", choices=Role.values, default=Role.RESEARCHER.value)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, team: str, user: str, role: str, **options: Any) -> None:
        member = set_role(
            team=Team.objects.named(team), user=User.named(user), role=Role(role), actor=None
        )
        if options["json"]:
            self.stdout.write(json.dumps({"team": team, "user": user, "role": member.role}))
        else:
            self.stdout.write(f"User {user} is {member.get_role_display()} of team '{team}'.")
