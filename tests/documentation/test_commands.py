"""Every command of the documentation is one that there is, with options that it has.

Those of tutorials, how-tos, the README and the tutorial in a browser are run (test_pages_run.py,
tests/console/test_readme.py, test_tutorial_in_a_browser.py); others are named here, with why.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from tests.documentation.pages import ROOT, Printed, all_pages, commands, walked_pages

pytestmark = pytest.mark.once
PAGES = [page for page in all_pages() if any(commands(page))]
# A reader's own name or number, an option that may be left out, a choice, "and so on".
PLACEHOLDER = re.compile(r"^([A-Z][A-Z_]*(\.\w+)?|.*…|\.\.\.|\[.*|.*\]|\|)$")
QUOTED = re.compile(r'"([a-z_]+)"')
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
RUN_ELSEWHERE = ("README.md", "tutorial.md")
# What is only read here, and what has run it.
HELD = {
    "assign_owner": "tests/annotation/test_ownership.py",
    "audit_collection": "files of others; tests/retrieval/test_audit.py",
    "audit_ledger": "tests/marketplace/test_operators.py",
    "backup": "tests/marketplace/test_backup.py",
    "block_worker": "a worker of a batch; tests/hits/test_review_commands.py",
    "check": "make check",
    "check_audit_log": "tests/accounts/test_audit.py",
    "check_embeddings": "tests/metrics/test_encoders.py",
    "check_prolific_schema": "tests/marketplace/recruiting/test_prolific_drift.py",
    "clear_workers": "a worker who waits; tests/hits/test_quality_checks.py",
    "compare_prompts": "tests/metrics/test_prompts.py",
    "create_demo_user": "tests/console/test_demo_users.py",
    "create_owner": "tests/accounts/test_teams.py",
    "create_user": "tests/accounts/test_users.py",
    "delete_expired": "tests/marketplace/test_personal_data.py",
    "deposit": "tests/marketplace/test_ledger.py",
    "erase_user": "tests/accounts/test_erasure.py",
    "erase_worker": "tests/marketplace/test_personal_data.py",
    "export_payouts": "tests/marketplace/test_operators.py",
    "export_user": "tests/accounts/test_erasure.py",
    "export_worker": "tests/marketplace/test_personal_data.py",
    "fake_prolific": "runs until stopped; tests/marketplace/recruiting/test_fake_prolific.py",
    "freeze_judgments": "tests/annotation/test_frozen_frames.py",
    "move_contents": "tests/work/test_contents.py",
    "geval_steps": "an endpoint of a language model; tests/metrics/test_judge_commands.py",
    "import_crsarena_eval": "a dataset of others; tests/annotation/test_importing_crsarena_eval.py",
    "import_golden_answers": "tests/replications",
    "import_mturk_batch": "a batch of others; tests/annotation/test_importing_mturk_batches.py",
    "import_participant_statuses": "a recruiter's file; tests/marketplace",
    "keep_judge": "an endpoint of a language model; tests/metrics/test_judge_commands.py",
    "lint_pool": "tests/retrieval/test_pool_lint.py",
    "load_samples": "make run, in .ci/run-site",
    "lmstyle_table": "the benchmark's files; tests/replications/test_lmstyle_tables.py",
    "mark_payouts_paid": "tests/marketplace/test_operators.py",
    "merge_assessors": "assessors' grades; tests/console/test_collection_assessors.py",
    "metrics": "tests/metrics",
    "migrate": "each test on a database",
    "override_rejections": "a rejection; tests/hits/test_review_commands.py",
    "password_link": "tests/accounts",
    "pay_bonuses": "assignments of a batch; tests/hits/test_review_commands.py",
    "pool_candidates": "runs and embeddings; tests/retrieval/test_pool_candidates.py",
    "probe_judge": "an endpoint of a language model; tests/metrics/test_judge_commands.py",
    "published_studies": "the authors' data; tests/replications/test_gallery.py",
    "recruit": "an account at Prolific; tests/marketplace/recruiting/test_prolific.py",
    "reencrypt_connections": "tests/hits/test_connections.py",
    "reencrypt_judge_connections": "tests/metrics",
    "reencrypt_second_factors": "tests/accounts/test_second_factor.py",
    "reencrypt_secrets": "tests/marketplace/test_secrets.py",
    "reject_submissions": "assignments of a batch; tests/hits/test_review_commands.py",
    "replay_lmstyle": "the benchmark's files; tests/replications/test_replay_lmstyle.py",
    "reseal_audit_log": "tests/accounts/test_audit.py",
    "restore": "an empty site; tests/marketplace/test_backup.py",
    "reverse_deposit": "tests/marketplace/test_ledger.py",
    "run_worker": "it runs until it is ended; tests/work",
    "sample_targets": "runs and embeddings; tests/retrieval/test_target_samples.py",
    "send_notifications": "tests/marketplace",
    "serve": "it runs until it is ended; .ci/run-site",
    "spectacular": "tests/console/test_openapi.py",
    "study_judges": "a study with judges; tests/metrics/test_judge_commands.py",
    "train_recommender": "minutes; tests/simulation/test_trained_recommenders.py",
}


def is_concrete(words: list[str]) -> bool:
    return not any(PLACEHOLDER.match(word) for word in words)


@cache
def parser_of(name: str) -> argparse.ArgumentParser:
    app = get_commands()[name]
    return load_command_class(app, name).create_parser("manage.py", name)


def fault(command: Printed) -> str | None:
    """Why a command cannot be what the page says; None where it can."""
    words = command.words
    if words[0] == "make":
        return _make_fault(words[1])
    if words[1] == "-m":
        return _module_fault(words[2], command.text)
    name = words[2]
    if name not in get_commands():
        return f"there is no command {name!r}"
    known = {option for each in parser_of(name)._actions for option in each.option_strings}
    if unknown := [option for option in OPTION.findall(command.text) if option not in known]:
        return f"{name} has no {', '.join(unknown)}"
    return _parse_fault(name, words[3:]) if is_concrete(words[3:]) and len(words) > 3 else None


def _make_fault(target: str) -> str | None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return None if re.search(rf"(?m)^{target}:", makefile) else f"there is no make {target}"


def _module_fault(module: str, text: str) -> str | None:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return f"there is no module {module}"
    origin = Path(spec.origin)
    files = origin.parent.glob("*.py") if origin.name == "__init__.py" else [origin]
    source = "".join(path.read_text("utf-8") for path in files)
    unknown = [option for option in OPTION.findall(text) if f'"{option}"' not in source]
    return f"{module} has no {', '.join(unknown)}" if unknown else None


def _parse_fault(name: str, words: list[str]) -> str | None:
    """Files that only the reader has need not be there: paths are not opened."""
    parser = parser_of(name)
    parser.called_from_command_line = False  # type: ignore[attr-defined]
    try:
        parser.parse_args(words)
    except CommandError as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_there_with_its_options(page: Path) -> None:
    faults = [f"{each}\n  {why}" for each in commands(page) if (why := fault(each))]
    assert not faults, "\n".join(faults)


def management_commands(page: Path) -> Iterator[str]:
    for command in commands(page):
        if command.words[1] == "manage.py":
            yield command.words[2]


def run_pages() -> list[Path]:
    elsewhere = [page for page in all_pages() if page.name in RUN_ELSEWHERE]
    return [*elsewhere, *walked_pages()]


def names_in_tests() -> set[str]:
    """What other tests name in quotes, as they do the commands that they run."""
    files = (path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    return {name for path in files for name in QUOTED.findall(path.read_text("utf-8"))}


def test_every_command_is_run_by_a_test_or_said_not_to_be() -> None:
    run = {name for page in run_pages() for name in management_commands(page)}
    named = {name for page in PAGES for name in management_commands(page)}
    assert named - run - HELD.keys() - names_in_tests() == set()


def test_what_is_said_not_to_be_run_here_is_not() -> None:
    """Else the list would say that less is run than is."""
    walked = {name for page in walked_pages() for name in management_commands(page)}
    assert HELD.keys() & walked == set()


@pytest.mark.parametrize("name", HELD)
def test_what_has_run_it_is_there(name: str) -> None:
    place = HELD[name].rpartition("; ")[2]
    assert not place.startswith("tests/") or (ROOT / place).exists()


def test_a_wrong_command_is_a_fault() -> None:
    def why(text: str) -> str | None:
        return fault(Printed(ROOT / "README.md", 1, text))

    assert why("python manage.py agreemnt FILE")
    assert why("python manage.py agreement FILE --levl nominal")
    assert why("python manage.py agreement a.csv --item i --annotator a --value v --level metric")
    assert why("python manage.py agreement a.csv --item i --annotator a --value v")
    assert why("python -m benchmarks.nothing")
    assert why("python -m benchmarks.coverage --parts alpha")
    assert why("make everything")
    assert not why("python manage.py agreement FILE --item C [--item C ...] --level LEVEL")
    assert not why("python -m benchmarks.coverage --part alpha")
