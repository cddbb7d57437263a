import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder

from accounts.enrolment import export_user
from accounts.models import User


class Command(BaseCommand):
    help = "Print all that is stored about a user, as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        exported = export_user(User.named(options["name"]))
        self.stdout.write(json.dumps(exported, cls=DjangoJSONEncoder, indent=1, ensure_ascii=False))
