import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from hits.connections import enrol_requester
from hits.loop import Marketplace, prepare_database, served_site
from presentation.progress import bar
from replications.lmstyle import SLUG, replay

TEST_FUNDS_USD = Decimal(100)


class Command(BaseCommand):
    help = (
        "Replay the LMStyle Benchmark's Mechanical Turk batch through the marketplace and print "
        "its Table 1: sample-level correlations x 100 of each metric with human ratings."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="of mturk_batch_results.csv")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        prepare_database()
        funds_usd = None if Study.objects.filter(slug=SLUG).exists() else TEST_FUNDS_USD
        with served_site() as site_url:
            key = enrol_requester(site_url=site_url, name=SLUG, test_funds_usd=funds_usd)
            cells = replay(folder=folder, marketplace=Marketplace(site_url, key), reporter=bar)
        if options["json"]:
            self.stdout.write(json.dumps(cells, indent=1))
        else:
            self.stdout.write("\n".join(_line(cell) for cell in cells))


def _line(cell: dict[str, Any]) -> str:
    value = "undefined" if cell["value"] is None else f"{cell['value']:6.1f}"
    return (
        f"{cell['metric']:14} {cell['by']:10} {cell['coefficient']:8} {value}"
        f"   {cell['n_used']} of {cell['n_groups']} groups"
    )
