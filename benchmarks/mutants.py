"""Whether tests notice a changed constant of money or time: ``python -m benchmarks.mutants``.

Each mutant is one change to a copy of the checkout; the tests named with it must then fail.
tests/marketplace/test_mutants.py checks that every mutant can still be applied.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.commands import CHECKOUT, parse_options, say

LIMITS = "tests/marketplace/test_limits.py"
FEES = "tests/marketplace/test_ledger.py"
FAILED = 1  # what pytest returns where tests ran and some failed


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    before: str
    after: str
    tests: str
    keyword: str = ""


MUTANTS = (
    Mutant(
        "fee: 21% of the reward",
        "marketplace/money/amounts.py",
        'share_of_reward=Decimal("0.20")',
        'share_of_reward=Decimal("0.21")',
        FEES,
        "fee",
    ),
    Mutant(
        "fee: large from eleven assignments on",
        "marketplace/money/amounts.py",
        'large_hit_share=Decimal("0.20"),\n        large_hit_assignments=10',
        'large_hit_share=Decimal("0.20"),\n        large_hit_assignments=11',
        FEES,
        "fee",
    ),
    Mutant(
        "fee: 4% for Masters",
        "marketplace/money/amounts.py",
        'masters_share=Decimal("0.05")',
        'masters_share=Decimal("0.04")',
        FEES,
        "fee",
    ),
    Mutant(
        "fee: 25% of a bonus",
        "marketplace/money/amounts.py",
        'share_of_bonus=Decimal("0.20")',
        'share_of_bonus=Decimal("0.25")',
        FEES,
        "fee",
    ),
    Mutant(
        "fee: none below a cent",
        "marketplace/money/amounts.py",
        "minimum_usd=CENT",
        "minimum_usd=Decimal(0)",
        FEES,
        "fee",
    ),
    Mutant(
        "fee: half a cent rounded to even",
        "marketplace/money/amounts.py",
        "rounding=ROUND_HALF_UP",
        'rounding="ROUND_HALF_EVEN"',
        FEES,
        "fee",
    ),
    Mutant(
        "deposit: ten million at once",
        "marketplace/money/amounts.py",
        'Decimal("1000000.00")',
        'Decimal("10000000.00")',
        "tests/marketplace/test_ledger.py",
        "slip",
    ),
    Mutant(
        "deposit: digits of any script",
        "marketplace/money/amounts.py",
        "([0-9]{1,12}",
        r"(\d{1,12}",
        "tests/marketplace/test_ledger.py",
        "no_plain",
    ),
    Mutant(
        "deposit: the same reference again",
        "marketplace/money/transfers.py",
        "if reference else None",
        "if None else None",
        "tests/marketplace/test_ledger.py",
        "reference_stands",
    ),
    Mutant(
        "bonus: one dollar more",
        "marketplace/hits/review.py",
        'Decimal("10000.00")',
        'Decimal("10001.00")',
        LIMITS,
        "largest_bonus",
    ),
    Mutant(
        "bonus: a day longer",
        "marketplace/hits/review.py",
        "timedelta(days=183)",
        "timedelta(days=184)",
        LIMITS,
        "183",
    ),
    Mutant(
        "override: a day less",
        "marketplace/hits/review.py",
        "timedelta(days=30)",
        "timedelta(days=29)",
        LIMITS,
        "thirty",
    ),
    Mutant(
        "override: a day longer",
        "marketplace/hits/review.py",
        "timedelta(days=30)",
        "timedelta(days=31)",
        "tests/marketplace/conformance/test_money.py",
        "thirty",
    ),
    Mutant(
        "auto-approval: a minute early",
        "marketplace/hits/assignments.py",
        "delay = timedelta(seconds=hit.hit_type.auto_approval_delay_seconds)",
        "delay = timedelta(seconds=hit.hit_type.auto_approval_delay_seconds - 60)",
        LIMITS,
        "delay",
    ),
    Mutant(
        "auto-approval: the moment itself left out",
        "marketplace/hits/lifecycle.py",
        "auto_approval_at__lte=now",
        "auto_approval_at__lt=now",
        LIMITS,
        "delay",
    ),
    Mutant(
        "deadline: the moment itself left out",
        "marketplace/hits/lifecycle.py",
        "deadline__lte=now",
        "deadline__lt=now",
        LIMITS,
        "abandoned",
    ),
    Mutant(
        "sweep: the moment itself left out",
        "marketplace/models/hits.py",
        "next_transition_at__lte=now",
        "next_transition_at__lt=now",
        LIMITS,
        "abandoned",
    ),
    Mutant(
        "sweep: worked-on HITs due for disposal",
        "marketplace/hits/lifecycle.py",
        "if tally.accepted == tally.submitted == 0 and hit.status != Hit.Status.ASSIGNABLE:",
        "if hit.status != Hit.Status.ASSIGNABLE:",
        LIMITS,
        "disposal",
    ),
    Mutant(
        "disposal: a day early",
        "marketplace/hits/lifecycle.py",
        "timedelta(days=120)",
        "timedelta(days=119)",
        "tests/marketplace/test_limits.py",
        "quiet_days",
    ),
    Mutant(
        "hold: at the promised price alone",
        "marketplace/hits/settlement.py",
        "max(promised_usd, price_usd) * count",
        "promised_usd * count",
        LIMITS,
        "dearer",
    ),
    Mutant(
        "hold: submitted work at today's price",
        "marketplace/hits/settlement.py",
        "total_usd += promised_usd * count",
        "total_usd += price_usd * count",
        LIMITS,
        "held",
    ),
    Mutant(
        "hold: taken assignments twice",
        "marketplace/hits/settlement.py",
        "(hit.max_assignments - tally.taken)",
        "hit.max_assignments",
        LIMITS,
        "held",
    ),
    Mutant(
        "hold: kept after the expiration",
        "marketplace/hits/settlement.py",
        "price_usd = hit.price_usd if hit.expiration > now else ledger.NOTHING",
        "price_usd = hit.price_usd",
        LIMITS,
        "held",
    ),
    Mutant(
        "ledger: a balance may fall below zero",
        "marketplace/money/ledger.py",
        "if balance_usd < 0 and account.kind",
        "if balance_usd < -1 and account.kind",
        "tests/marketplace/test_ledger.py",
        "only_what_is_available",
    ),
    Mutant(
        "signature: twenty minutes of skew",
        "marketplace/api/authentication.py",
        "timedelta(minutes=15)",
        "timedelta(minutes=20)",
        "tests/marketplace/test_sigv4.py",
        "fifteen",
    ),
    Mutant(
        "publishing: tokens trusted for thirty hours",
        "hits/publications.py",
        "TOKEN_TRUSTED_FOR = timedelta(hours=20)",
        "TOKEN_TRUSTED_FOR = timedelta(hours=30)",
        "tests/hits/test_publish.py",
        "twenty_hours",
    ),
)


def main(mutants: Sequence[Mutant] = MUTANTS) -> int:
    options = parse_options(__doc__, only=("", "a part of the names of those to try"))
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy_checkout(Path(folder) / "checkout")
        for mutant in mutants:
            if options.only in mutant.name:
                start = perf_counter()
                is_caught = _is_caught(mutant, copy)
                result = "caught" if is_caught else "SURVIVED"
                say(f"{result:<9}{perf_counter() - start:6.1f} s  {mutant.name}")
                survivors += [] if is_caught else [mutant.name]
    say(f"{len(survivors)} survived.")
    return 1 if survivors else 0


def apply(mutant: Mutant, folder: Path) -> str:
    """Change the file in this checkout; the text that it had is returned."""
    path = folder / mutant.file
    text = path.read_text("utf-8")
    if text.count(mutant.before) != 1:
        raise ValueError(f"{mutant.file} has {mutant.before!r} {text.count(mutant.before)} times")
    path.write_text(text.replace(mutant.before, mutant.after), "utf-8")
    return text


def _is_caught(mutant: Mutant, copy: Path) -> bool:
    text = apply(mutant, copy)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-migrations", mutant.tests]
    command += ["-k", mutant.keyword] if mutant.keyword else []
    ended = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    (copy / mutant.file).write_text(text, "utf-8")
    if ended.returncode > FAILED:
        raise RuntimeError(f"{mutant.name}: pytest ended with\n{ended.stdout}{ended.stderr}")
    return ended.returncode == FAILED


def _copy_checkout(target: Path) -> Path:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (CHECKOUT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, target / name)
    return target


if __name__ == "__main__":
    sys.exit(main())
