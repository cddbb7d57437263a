"""A process that scores a study, writes down what it computes, and can be stopped dead midway.

    python -m tests.metrics.scoring_process LOG [measuring|writing BATCH]

At that batch it says so on standard output and waits to be killed: while it measures, or
inside the transaction that writes.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import django

SLUG = "killed"
BATCH_SIZE = 150


def wait_to_be_killed() -> None:
    sys.stdout.write("now\n")
    sys.stdout.flush()
    time.sleep(600)


def main(log: Path, stage: str = "", batch: str = "0") -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from django.db import connection

    from annotation.models import Study
    from metrics.scorers.rouge import Rouge
    from metrics.scorers.scorer import Example, Scores
    from metrics.study_scores import score_study

    n_batches = n_writes = 0

    class Logged(Rouge):
        batch_size = BATCH_SIZE

        def measure(self, examples: Sequence[Example]) -> Sequence[Scores]:
            nonlocal n_batches
            n_batches += 1
            with log.open("a") as file:
                file.writelines(f"{example.item} {example.system}\n" for example in examples)
            if stage == "measuring" and n_batches == int(batch):
                wait_to_be_killed()
            return super().measure(examples)

    def watched(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        nonlocal n_writes
        done = execute(sql, *rest)
        n_writes += sql.startswith("SELECT") and "lease_token" in sql.partition("WHERE")[2]
        is_insert = sql.startswith('INSERT INTO "metrics_score"')
        if stage == "writing" and n_writes == int(batch) and is_insert:
            wait_to_be_killed()
        return done

    with connection.execute_wrapper(watched):
        result = score_study(study=Study.objects.get(slug=SLUG), scorer=Logged("1"))
    sys.stdout.write(f"{result}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
