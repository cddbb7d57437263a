from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from replications.lmstyle import ALL_SCORES, BATCH, SCORES, data_file, table_1, table_2, table_3
from stats.libraries import pd

FIELDS = ("question", "metric", "coefficient", "system", "family", "by")
COLUMNS = {1: ["by"], 2: ["family", "metric"], 3: ["by"]}
FILES = {1: (BATCH, SCORES), 2: (ALL_SCORES,), 3: (BATCH,)}


class Command(BaseCommand):
    help = (
        "Print a table of the LMStyle Benchmark from its files: 1, metrics and ratings at the "
        "sample level; 2, the systems by metrics; 3, the systems by human ratings. "
        "`reproduce lmstyle` prints all tables beside the published values."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="of mturk_batch_results.csv")
        parser.add_argument("--table", type=int, choices=sorted(FILES), required=True)
        parser.add_argument(
            "--undefined",
            choices=["drop", "zero"],
            default="drop",
            help="what becomes of items on which a side is constant, in Table 1",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, folder: Path, table: int, undefined: Any, **options: Any) -> None:
        paths = [data_file(folder, name) for name in FILES[table]]
        if table == 1:
            cells = table_1(paths[0], paths[1], undefined)
        else:
            cells = {2: table_2, 3: table_3}[table](*paths)
        if options["json"]:
            self.stdout.write(json.dumps(cells, indent=1))
        else:
            self.stdout.write(_laid_out(pd.DataFrame(cells), COLUMNS[table]))


def _laid_out(cells: pd.DataFrame, columns: list[str]) -> str:
    across = cells.astype({"value": "float64"}).pivot_table(
        index=[name for name in FIELDS if name in cells and name not in columns],
        columns=columns,
        values="value",
        sort=False,
        dropna=False,
    )
    return across.to_string(float_format="{:.1f}".format, na_rep="undefined")
