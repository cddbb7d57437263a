"""`lint_pool`: what is wrong with a pool, by line, and what of it is allowed."""

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from config.commandline import main
from retrieval.exceptions import PoolDefective, PoolFileFaults
from retrieval.pools.catalogue import read_catalogue
from retrieval.pools.construction import make_pool
from retrieval.pools.lint import PoolFault, lint_pool
from retrieval.pools.pool_files import read_pool_table, read_wide_table, table_of
from retrieval.pools.records import PoolPlan, Target
from tests.codes import refused_naming
from tests.retrieval.conftest import WriteFile
from tests.retrieval.pool_sources import run_source, synthetic_sources
from tests.retrieval.test_pools import QUOTAS, catalogue_of_pictures


def lint(*arguments: Any) -> tuple[dict[str, Any], str]:
    """The record that the command prints, and why it refuses the pool, if it does."""
    out, refusal = StringIO(), ""
    try:
        call_command("lint_pool", *map(str, arguments), "--json", stdout=out)
    except PoolDefective as error:
        refusal = str(error)
    return json.loads(out.getvalue()), refusal


def places(faults: Any, name: str) -> list[tuple[int | None, str]]:
    return [(each.line, each.docno) for each in faults if each.name == name]


def test_a_sound_pool_passes(tmp_path: Path):
    targets, sources = synthetic_sources()
    pool = make_pool(targets, sources, PoolPlan(quotas=tuple(QUOTAS.items())))
    found = lint_pool(table_of(pool))
    assert found.faults == ()
    assert set(found.checked) == {"repeat", "target", "hub", "short", "quota", "unlisted"}


def test_a_target_that_no_source_knows_is_a_fault():
    """Its pool is of random documents alone, or empty; whose sources are not named is not asked."""
    run = run_source("bm25", {"1": "abc", "2": "bcd"})
    targets = [Target("1"), Target("2"), Target("99")]
    for uniform in (0, 1):
        pool = make_pool(targets, [run], PoolPlan(depth=2, uniform=uniform))
        [fault] = lint_pool(table_of(pool)).faults
        assert (fault.name, fault.topic) == ("unlisted", "99")
    unnamed = replace(
        table_of(pool), rows=tuple(replace(row, source="") for row in table_of(pool).rows)
    )
    assert "unlisted" not in lint_pool(unnamed).checked


def test_each_defect_is_named_with_its_line(file: WriteFile):
    rows = [
        "topic,target,docno,source,quota",
        "q1,t,one,a,a",
        "q1,t,t,a,a",
        "q1,t,copy,a,a",
        "q1,t,one,b,a",
        "q1,t,two,b,b",
        "q2,other,lost,a,a",
        "q2,other,foreign,a,a",
        "q2,other,plain,b,b",
    ]
    path = file("pool.csv", "\n".join(rows))
    catalogue_path = catalogue_of_pictures(file)
    with catalogue_path.open("a") as catalogue:
        catalogue.write("\nplain,a shoe,\n")
    found = lint_pool(
        read_pool_table(path), catalogue=read_catalogue(catalogue_path), per_topic=5
    ).faults
    assert places(found, "target") == [(3, "t"), (4, "copy")]
    assert places(found, "repeat") == [(5, "one")]
    assert places(found, "content") == [(6, "two")]
    assert places(found, "picture") == [(7, "lost"), (9, "plain")]
    assert places(found, "unknown") == [(8, "foreign")]
    assert [(each.line, each.topic) for each in found if each.name == "short"] == [(7, "q2")]
    [quota] = [each for each in found if each.name == "quota"]
    assert (quota.line, quota.topic) == (2, "q1")
    assert re.findall(r"\b[ab1]\b", quota.problem) == ["1", "a"]
    assert len(found) == 9


def test_what_is_allowed_is_reported_and_does_not_refuse(file: WriteFile):
    path = file("pool.csv", "topic,target,docno\nq,t,a\nq,t,a\nq,t,t\n")
    record, refusal = lint(path, "--allow=repeat", "--allow=target")
    assert refusal == ""
    assert record["is_refused"] is False
    assert [(each["name"], each["allowed"]) for each in record["faults"]] == [
        ("repeat", True),
        ("target", True),
    ]
    assert record["counts"]["content"]["n"] is None
    _, refusal = lint(path, "--allow=repeat")
    assert "(target)" in refusal
    unallowed = [fault for fault in record["faults"] if fault["name"] == "target"]
    assert [(fault["line"], fault["docno"]) for fault in unallowed] == [(4, "t")]


def test_the_plan_in_a_file_says_what_is_to_be_met(tmp_path: Path):
    sources = [run_source("a", {"q": ["x"]}), run_source("b", {"q": ["x", "y", "z"]})]
    out = StringIO()
    runs = []
    for source in sources:
        lines = [f"q Q0 {docno} 1 {-at} {source.name}" for at, docno in enumerate(source.documents)]
        (tmp_path / f"{source.name}.run").write_text("\n".join(lines))
        runs.append(f"--run={source.name}={tmp_path / source.name}.run")
    pool = tmp_path / "pool.json"
    call_command(
        "pool_candidates", *runs, "--quota=a=2", "--quota=b=2", f"--output={pool}", stdout=out
    )
    record, refusal = lint(pool)
    assert [(each["name"], each["topic"]) for each in record["faults"]] == [
        ("quota", "q"),
        ("short", "q"),
    ]
    assert re.findall(r"\d+", record["faults"][1]["problem"]) == ["3", "4"]
    assert "pool.json" in refusal


def test_a_hub_is_named_unless_the_catalogue_is_small(file: WriteFile):
    rows = ["topic,docno"]
    rows += [f"q{topic},d{topic * 4 + slot}" for topic in range(30) for slot in range(4)]
    rows += [f"q{topic},hub" for topic in range(5)]
    [found] = lint_pool(read_pool_table(file("pool.csv", "\n".join(rows)))).faults
    assert re.findall(r"\d+", found.problem) == ["5", "30"]
    assert replace(found, problem="") == PoolFault("hub", "", line=122, docno="hub")
    small = [f"q{topic},d{(topic + slot) % 12}" for topic in range(30) for slot in range(4)]
    table = read_pool_table(file("small.csv", "\n".join(["topic,docno", *small])))
    assert lint_pool(table).faults == ()


def test_a_table_with_a_row_a_target_lacks_what_its_empty_cells_lack(file: WriteFile):
    path = file("hits.csv", "HIT,target,c1,c2,c10,comment\nh1,t,a,b,c,\nh2,t,a,,d,\n")
    table = read_wide_table(path, target="target", candidates=["c*"])
    assert list(table.targets.items()) == [("t", "t"), ("t:3", "t")]
    [fault] = lint_pool(table).faults
    assert (fault.name, fault.topic) == ("short", "t:3")
    assert re.findall(r" (\d+)", fault.problem) == ["2", "3"]
    table = read_wide_table(path, target="target", candidates=["c1", "c10"], topic="HIT")
    assert list(table.targets) == ["h1", "h2"]
    with refused_naming(PoolFileFaults, "hits.csv", " x"):
        read_wide_table(path, target="target", candidates=["x*"])
    with refused_naming(CommandError, "--target", "--candidates"):
        call_command("lint_pool", str(path), "--target=target", stdout=StringIO())


def test_a_topic_in_a_pool_without_targets_is_checked_for_repeats_alone():
    pool = make_pool([Target("q")], [run_source("a", {"q": ["x"]})], PoolPlan(depth=3))
    found = lint_pool(table_of(pool))
    assert found.faults == ()
    assert "short" not in found.checked


@pytest.mark.parametrize(("allowed", "code"), [((), 2), (("--allow=target",), 0)])
def test_a_shell_learns_of_a_defective_pool(
    file: WriteFile, capsys: pytest.CaptureFixture[str], allowed: tuple[str, ...], code: int
):
    path = file("pool.csv", "topic,target,docno\nq,t,a\nq,t,t\n")
    assert main(["manage.py", "lint_pool", str(path), *allowed]) == code
    assert ("pool.csv" in capsys.readouterr().err) == bool(code)
