"""Run the whole loop of a study while processes are killed and the marketplace's answers fail.

    python -m benchmarks.faults                       many seeds, the table in docs/faults.md
    python -m benchmarks.faults --database sqlite --hits 40 --seed 3

A trial is good when each planned HIT is there once, each answer stored once, each intended payment
made exactly once, both ledgers agree to the cent and balance, the audit log holds, no job waits.
"""

import json
import signal
import sys
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.commands import POSTGRES, parse_options, run_again, say, source
from benchmarks.faults.environment import markdown_table, replace_section, run_on_a_new_site

HEADING = "The whole loop"
COLUMNS = (
    *("database", "seed", "n_hits", "n_answers", "n_payments", "n_kills", "n_line_faults"),
    *("n_presses_again", "n_double_messages", "n_faults", "seconds"),
)
NAMES = (
    *("Database", "Seed", "HITs", "Answers", "Payments", "Kills", "Calls lost, doubled or cut"),
    *("Buttons pressed again", "Messages twice", "Wrong at the end", "Seconds"),
)


def main() -> int:
    options = parse_options(
        __doc__,
        database=((None, "sqlite", "postgresql"), "default: both"),
        hits=(500, "of the study"),
        seed=(int, "one trial, printed as JSON"),
        seeds=(5, "trials for each database"),
        **POSTGRES,
    )
    # So that a trial that is ended takes its site along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended."))

    def run(port: int, log: Path) -> Any:
        from benchmarks.faults.loop_trial import run_loop_trial

        return run_loop_trial(n_hits=options.hits, seed=options.seed, port=port, log=log)

    if options.seed is not None:
        record = run_on_a_new_site(
            run,
            database=options.database or "sqlite",
            postgres=options.postgres,
            MARKETPLACE_FEE_SCHEDULE="mturk",
        )
        say(json.dumps(record))
        return 0 if record["is_good"] else 1
    databases = [options.database] if options.database else ["sqlite", "postgresql"]
    records = []
    for database, seed in product(databases, range(1, options.seeds + 1)):
        records.append(run_again("benchmarks.faults", options, database=database, seed=seed))
        sys.stderr.write(json.dumps(records[-1]) + "\n")
    write_section(records)
    return 0 if all(record["is_good"] for record in records) else 1


def write_section(records: list[dict[str, Any]]) -> None:
    lines = [
        f"Made by `python -m benchmarks.faults` on {datetime.now(UTC):%Y-%m-%d} from commit "
        f"{source()}. HITs are published, given a second assignment, answered by four simulated "
        "workers, collected, approved, rejected, paid in part, paid bonuses, overridden and closed "
        "by two people who press every button twice at the same moment. Meanwhile web and queue "
        "workers are killed (SIGKILL) every few seconds, and one call to the "
        "marketplace in six is lost, done and not answered, done twice, cut short or refused. A "
        "button is pressed again where its job failed. Messages know no token in "
        "the Requester API, and may come twice.",
        "",
    ]
    rows = []
    for record in records:
        counts = {
            "n_kills": sum(record["kills"].values()),
            "n_line_faults": sum(record["line_faults"].values()),
            "n_faults": len(record["faults"]),
        }
        rows.append([(record | counts)[name] for name in COLUMNS])
    replace_section(HEADING, [*lines, *markdown_table(NAMES, rows)])


if __name__ == "__main__":
    sys.exit(main())
