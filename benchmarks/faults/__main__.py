"""Kill web, worker and supervisor processes at random while jobs of each queue run.

    python -m benchmarks.faults                        the table of docs/faults.md, 200 kills each
    python -m benchmarks.faults --database sqlite --queue rq --kills 20

Databases: sqlite, and postgresql at --postgres (a database of its own is made and dropped).
Queues: database, and rq at --redis. A trial is good when every job was done once or failed with
a reason, no job was run by two processes at once, and no process was left over.
"""

import json
import sys
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from secrets import token_hex
from typing import Any

from benchmarks.commands import POSTGRES, parse_options, run_again, say, source
from benchmarks.faults.environment import DOCUMENT, markdown_table, run_on_a_new_site

NAMES = (
    *("Database", "Queue", "Kills", "Jobs", "Done once", "Failed with a reason"),
    *("Begun more than once", "Effects twice or missing", "Run by two at once", "Unfinished"),
    "Processes left over",
)
COLUMNS = (
    *("database", "queue", "n_kills", "n_jobs", "n_done", "n_failed", "n_repeated", "n_wrong"),
    *("n_runs_at_once", "n_unfinished", "n_orphans"),
)


def main() -> int:
    options = parse_options(
        __doc__,
        database=((None, "sqlite", "postgresql"), "default: both"),
        queue=((None, "database", "rq"), "default: both"),
        kills=(200, "of each trial"),
        seed=(1, "of the kills"),
        **POSTGRES,
        redis=("redis://127.0.0.1:6379/9", "a server"),
    )

    def run(port: int, log: Path) -> Any:
        from benchmarks.faults.trial import run_trial

        return run_trial(n_kills=options.kills, seed=options.seed, port=port, log=log)

    if options.database and options.queue:
        variables = {
            "DJANGO_SETTINGS_MODULE": "benchmarks.faults.settings",
            "TASKS_BACKEND": options.queue,
            "REDIS_URL": options.redis,
            "RQ_PREFIX": f"assay_faults_{token_hex(4)}-",
            "PYTHONWARNINGS": "",
        }
        record = run_on_a_new_site(
            run, database=options.database, postgres=options.postgres, **variables
        )
        say(json.dumps(record | {"queue": options.queue}))
        return 0 if record["is_good"] else 1
    records = []
    for database, queue in product(("sqlite", "postgresql"), ("database", "rq")):
        records.append(run_again("benchmarks.faults", options, database=database, queue=queue))
        sys.stderr.write(json.dumps(records[-1]) + "\n")
    # What other trials wrote after the first part stays.
    rest = DOCUMENT.read_text().partition("\n## ")
    DOCUMENT.write_text(_document(records) + "".join(rest[1:]))
    return 0 if all(record["is_good"] for record in records) else 1


def _document(records: list[dict[str, Any]]) -> str:
    lines = [
        "# Killing the site at random",
        "",
        f"Made by `make long` on {datetime.now(UTC):%Y-%m-%d} from commit {source()}. Web servers, "
        "their workers, the workers of the queues and `serve` itself are killed (SIGKILL) at "
        "random while jobs of each queue run; a killed `serve` is started again. Each job's "
        "effects are counted in the transactions that its lease guards. Supervisor, web server and "
        "workers are the site's own; the apps that are slow to load are left out.",
        "",
    ]
    rows = []
    for record in records:
        n_wrong = record["n_doubled_effects"] + record["n_missing_effects"]
        rows.append([(record | {"n_wrong": n_wrong})[name] for name in COLUMNS])
    return "\n".join([*lines, *markdown_table(NAMES, rows), ""])


if __name__ == "__main__":
    sys.exit(main())
