import socket
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import positive
from work.exceptions import AddressUnfit
from work.site import require_free, serve_site


class Command(BaseCommand):
    help = "Start the site with its marketplace and the background workers, and keep them running."

    def add_arguments(self, parser: CommandParser) -> None:
        where = urlsplit(settings.SITE_URL)
        parser.add_argument("--bind", default=f"{where.hostname}:{where.port or 8000}")
        parser.add_argument("--threads", type=positive, default=8)

    def handle(self, *args: Any, bind: str, threads: int, **options: Any) -> None:
        try:
            require_free(bind)
            _require_private_keys(bind)
        except AddressUnfit as unfit:
            raise CommandError(str(unfit), returncode=2) from None
        serve_site(bind, threads=threads, greeting=_welcome(bind))


def _require_private_keys(bind: str) -> None:
    # The settings judge by SITE_URL and ALLOWED_HOSTS; binding to more opens the site to more.
    host = socket.gethostbyname(bind.rpartition(":")[0])
    if settings.USES_PUBLISHED_KEYS and not ip_address(host).is_loopback:
        raise CommandError(
            f"At {bind} others can reach the site, and SECRET_KEY, one of SECRET_KEY_FALLBACKS or "
            "ENCRYPTION_KEYS is a published one. Set them as .env.example says.",
            returncode=2,
        )


def _welcome(bind: str) -> str:
    from config.samples import ANALYST, RESEARCHER, WORKER  # imports much; --help needs none of it

    site = f"http://{bind}"
    password = settings.SAMPLE_PASSWORD or "the one you chose"
    return (
        f"\nAssay is at {site}\n"
        f"  Researchers:  {site}/          sign in as {RESEARCHER}, password {password}\n"
        f"                or as {ANALYST}, same password, to see what an analyst sees\n"
        f"  Workers:      {site}/worker/   sign in as {WORKER}, password {password}\n"
        f"  Requester API for boto3: AWS_ENDPOINT_URL_MTURK={site}/requester\n"
        "WEB_PROCESSES and WORKER_PROCESSES in .env start more processes.\n"
        "Ctrl-C stops it.\n"
    )
