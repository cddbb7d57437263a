import json
import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from itertools import groupby

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from config.commandline import main
from retrieval.exceptions import PoolDefective, PoolFileFaults, PoolUnfit
from retrieval.pools import pool_files
from retrieval.pools.catalogue import Catalogue, Document, read_catalogue
from retrieval.pools.construction import make_pool
from retrieval.pools.lint import PoolFault, lint_pool
from retrieval.pools.records import PoolPlan, Target
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval.pool_sources import embedding_source, run_source, synthetic_sources

QUOTAS = {"bm25": 2, "dense": 2, "hybrid": 2, "short": 2, "pixels": 3, "words": 3}


@pytest.fixture(scope="module")
def pool():
    """200 targets of four runs and two embeddings over 5,000 documents, 14 candidates each."""
    targets, sources = synthetic_sources()
    return make_pool(targets, sources, PoolPlan(quotas=tuple(QUOTAS.items()), seed=1))


def docnos(pool, topic="q"):
    return [slot.docno for slot in pool.by_topic()[topic]]


def test_every_target_has_fourteen_distinct_candidates_and_every_quota_is_met(pool):
    topics = pool.by_topic()
    assert len(topics) == 200
    for target in pool.targets:
        slots = topics[target.topic]
        assert len({slot.docno for slot in slots}) == len(slots) == 14
        assert target.docno not in {slot.docno for slot in slots}
        assert Counter(slot.source for slot in slots) == QUOTAS
        assert all(slot.quota == slot.source for slot in slots)
    assert pool.dry == ()
    assert pool.report["n_topics_short"] == pool.report["n_topics_with_quotas_unmet"] == 0


def test_every_document_above_a_slot_in_its_list_is_a_slot_or_a_logged_replacement(pool):
    targets, sources = synthetic_sources()
    passed = {(each.topic, each.source, each.source_rank): each for each in pool.replacements}
    assert len(passed) == len(pool.replacements) > 100
    slots = {(slot.topic, slot.source, slot.source_rank): slot for slot in pool.slots}
    for source in sources:
        lists = source.lists(targets, 100)
        for number, target in enumerate(targets):
            listed = lists.of(number)
            of = (target.topic, source.name)
            deepest = max(rank for topic, name, rank in slots if (topic, name) == of)
            for rank in range(1, deepest + 1):
                key = (target.topic, source.name, rank)
                assert (key in slots) != (key in passed)
                entry = slots.get(key) or passed[key]
                assert entry.docno == listed[rank - 1]
    first = {(slot.topic, slot.docno): slot.slot for slot in pool.slots}
    target_of = {target.topic: target.docno for target in pool.targets}
    for each in pool.replacements:
        if each.reason == "target":
            assert each.docno == target_of[each.topic]
        else:
            assert each.reason == "pooled"
            assert first[each.topic, each.docno] < each.slot


def test_sources_take_turns_and_who_is_first_changes_by_topic(pool):
    firsts = set()
    for _, slots in groupby(pool.slots, lambda slot: slot.topic):
        turns = [slot.source for slot in slots]
        assert set(turns[:6]) == set(turns[6:12]) == set(QUOTAS)
        assert set(turns[12:]) == {"pixels", "words"}
        firsts.add(turns[0])
    assert firsts == set(QUOTAS)


def test_a_topic_is_pooled_by_itself_at_positions_that_say_nothing(pool):
    targets, sources = synthetic_sources()
    some = make_pool(targets[50:60], sources, PoolPlan(quotas=tuple(QUOTAS.items()), seed=1))
    topics = {target.topic for target in targets[50:60]}
    assert some.slots == tuple(slot for slot in pool.slots if slot.topic in topics)
    other = make_pool(targets[50:60], sources, PoolPlan(quotas=tuple(QUOTAS.items()), seed=2))
    assert other.slots != some.slots
    for slots in pool.by_topic().values():
        assert sorted(slot.position for slot in slots) == list(range(1, 15))
    for source in QUOTAS:
        # 400 positions or more, of mean 7.5 and standard deviation 4.03.
        positions = [slot.position for slot in pool.slots if slot.source == source]
        assert abs(np.mean(positions) - 7.5) < 0.7


def test_a_list_that_ends_is_named_and_the_next_source_fills_its_slots():
    sources = [run_source("a", {"q": ["t", "x"]}), run_source("b", {"q": [*"xyzuv"]})]
    made = make_pool([Target("q", "t")], sources, PoolPlan(quotas=(("a", 3), ("b", 2))))
    assert len(set(docnos(made))) == 5
    [dry] = made.dry
    assert (dry.source, dry.quota, dry.n_listed) == ("a", 3, 2)
    assert dry.filled_by == ("b",) * dry.n_missing
    assert Counter(slot.quota for slot in made.slots) == {"a": 3, "b": 2}
    assert made.report["n_topics_with_quotas_unmet"] == 1
    passed = {(each.docno, each.source): each.reason for each in made.replacements}
    assert passed["t", "a"] == "target"


def test_a_pool_that_no_source_can_fill_is_short_and_says_so():
    source = run_source("a", {"q": ["t", "x"]})
    made = make_pool([Target("q", "t")], [source], PoolPlan(quotas=(("a", 3),)))
    assert docnos(made) == ["x"]
    assert made.dry[0].n_missing == 2
    assert made.dry[0].filled_by == ()
    assert made.report["n_topics_short"] == 1
    assert made.report["sources"][0]["n_unlisted"] == 0


def test_what_a_uniform_draw_fills_for_a_list_that_ended_has_its_probability():
    source = run_source("a", {"q": ["x"], "other": [*"uvwyz"]})
    made = make_pool([Target("q")], [source], PoolPlan(quotas=(("a", 2),), uniform=2))
    drawn = [slot for slot in made.slots if slot.source == "uniform"]
    assert len(drawn) == 3
    assert {slot.inclusion for slot in drawn} == {3 / 5}
    assert made.dry[0].filled_by == ("uniform",)


def test_every_document_of_the_rest_is_drawn_with_the_recorded_probability():
    names = [f"d{number}" for number in range(12)]
    targets = [Target(f"q{number}", "d0") for number in range(3000)]
    source = run_source("a", {target.topic: names[1:3] for target in targets})
    catalogue = Catalogue({name: Document(name) for name in names})
    plan = PoolPlan(quotas=(("a", 2),), uniform=3, seed=5)
    made = make_pool(targets, [source], plan, catalogue=catalogue)
    drawn = [slot for slot in made.slots if slot.source == "uniform"]
    assert {slot.inclusion for slot in drawn} == {3 / 9}
    counts = Counter(slot.docno for slot in drawn)
    assert set(counts) == set(names[3:])
    # 1,000 of 3,000 expected; the standard deviation is 25.8.
    assert all(abs(count - 1000) < 4 * 25.8 for count in counts.values())


def test_a_depth_pool_is_the_union_of_the_first_ranks():
    targets, sources = synthetic_sources(n_topics=20)
    made = make_pool(targets, sources, PoolPlan(depth=5))
    lists = [source.lists(targets, 5) for source in sources]
    for number, target in enumerate(targets):
        union = {docno for each in lists for docno in each.of(number)} - {target.docno}
        assert set(docnos(made, target.topic)) == union
    assert {each.reason for each in made.replacements} <= {"target"}


@pytest.mark.timeout(120)
def test_a_pool_ends_with_its_lists_however_much_is_asked():
    sources = [run_source(name, {"q": [f"{name}{n}" for n in range(30)]}) for name in "ab"]
    most = 10**9
    by_quota = make_pool([Target("q")], sources, PoolPlan(quotas=(("a", most), ("b", 2))))
    by_depth = make_pool([Target("q")], sources, PoolPlan(depth=most))
    for made in (by_quota, by_depth):
        assert len(docnos(made, "q")) == 60
    assert by_quota.report["n_topics_with_quotas_unmet"] == 1


def test_a_fused_pool_has_the_first_documents_by_reciprocal_ranks():
    sources = [run_source("a", {"q": [*"xyz"]}), run_source("b", {"q": [*"yzwt"]})]
    made = make_pool([Target("q", "t")], sources, PoolPlan(take=3))
    # y: 1/62 + 1/61, z: 1/63 + 1/62, x: 1/61.
    assert docnos(made) == ["y", "z", "x"]
    assert made.slots[0].source == "b"
    assert made.slots[0].also == (("a", 2),)


def test_the_same_picture_is_pooled_once_and_never_that_of_the_target(file):
    catalogue = read_catalogue(catalogue_of_pictures(file))
    source = run_source("a", {"q": ["copy", "one", "two", "lost", "other", "foreign", "last"]})
    plan = PoolPlan(quotas=(("a", 3),))
    made = make_pool([Target("q", "t")], [source], plan, catalogue=catalogue)
    assert docnos(made) == ["one", "other", "last"]
    assert [(each.docno, each.reason, each.other) for each in made.replacements] == [
        ("copy", "target", "t"),
        ("two", "content", "one"),
        ("lost", "picture", ""),
        ("foreign", "unknown", ""),
    ]


def catalogue_of_pictures(file):
    """`copy` shows what the target shows, `two` what `one` does, and `lost` has no picture."""
    for colour in ("red", "blue", "green", "grey"):
        for name in (colour, f"{colour}-again"):
            file(f"{name}.svg", f'<svg xmlns="http://www.w3.org/2000/svg" fill="{colour}"/>')
    rows = "t,red.svg copy,red-again.svg one,blue.svg two,blue-again.svg other,green.svg"
    rows += " lost,nowhere.svg last,grey.svg"
    lines = [row.replace(",", f",a shoe {at},") for at, row in enumerate(rows.split())]
    return file("catalogue.csv", "\n".join(["docno,title,image", *lines]))


def test_texts_that_differ_in_white_space_alone_are_the_same(file):
    path = file("catalogue.csv", "docno,title\na,red shoe\nb,red  shoe \nc,blue shoe\n")
    source = run_source("s", {"q": ["a", "b", "c"]})
    plan = PoolPlan(quotas=(("s", 2),))
    made = make_pool([Target("q")], [source], plan, catalogue=read_catalogue(path))
    assert docnos(made) == ["a", "c"]


def test_a_capped_document_stands_in_no_more_pools_and_the_cap_is_logged():
    targets = [Target(f"q{number}") for number in range(30)]
    lists = {f"q{at}": ["hub", *(f"d{n}" for n in range(at, at + 9))] for at in range(30)}
    plan = PoolPlan(quotas=(("a", 3),), seed=3)
    free = make_pool(targets, [run_source("a", lists)], plan)
    assert free.report["hubs"][0] == {"docno": "hub", "n_topics": 30, "share": 1.0}
    capped = make_pool(targets, [run_source("a", lists)], replace(plan, cap=4))
    counts = Counter(slot.docno for slot in capped.slots)
    assert counts["hub"] == max(counts.values()) == 4
    assert {each.reason for each in capped.replacements} == {"cap"}
    with_hub = {slot.topic for slot in capped.slots if slot.docno == "hub"}
    assert with_hub != {target.topic for target in targets[:4]}


def test_excluded_documents_are_not_pooled():
    source, plan = run_source("a", {"q": [*"xyz"]}), PoolPlan(quotas=(("a", 2),))
    made = make_pool([Target("q")], [source], plan, excluded={"x"})
    assert docnos(made) == ["y", "z"]
    assert made.replacements[0].reason == "excluded"


def test_a_run_is_read_by_falling_score_and_ties_by_falling_name():
    source = run_source("a", {"q": ["a", "b", "c"]})
    tied = replace(source, run=replace(source.run, score=np.array([1.0, 1.0, 2.0])))
    assert tied.lists([Target("q")], 10).of(0) == ["c", "b", "a"]


def test_lists_of_neighbours_grow_until_the_quota_is_met():
    rng = np.random.default_rng(2)
    names = [f"d{number}" for number in range(600)]
    array = rng.normal(size=(600, 4)).astype(np.float32)
    catalogue = Catalogue(
        {name: Document(name, digest="same" if at < 590 else "") for at, name in enumerate(names)}
    )
    source, plan = embedding_source("e", names, array), PoolPlan(quotas=(("e", 10),))
    made = make_pool([Target("q", "d595")], [source], plan, catalogue=catalogue)
    assert len(made.slots) == 10
    assert {each.reason for each in made.replacements} == {"content"}
    assert max(slot.source_rank for slot in made.slots) > 400


@pytest.mark.parametrize(
    ("sources", "named"),
    [(["a", "a"], [" a"]), (["b"], [" a"]), (["a", "uniform"], ["'uniform'"]), ([], [])],
)
def test_sources_that_cannot_be_told_apart_are_refused(sources, named):
    made = [run_source(name, {"q": ["x"]}) for name in sources]
    with refused_naming(PoolUnfit, *named):
        make_pool([Target("q")], made, PoolPlan(quotas=(("a", 1),)))


def test_a_plan_is_one_of_three_kinds():
    for wrong in ({}, {"depth": 3, "take": 4}, {"depth": -1}, {"quotas": (("a", 0),)}):
        with refused_naming(ValueError, *list(wrong)[:1]):
            PoolPlan(**wrong)


@pytest.mark.parametrize("name", ["pool.csv", "pool.json"])
def test_a_pool_is_read_as_it_was_written(tmp_path, name):
    targets, sources = synthetic_sources(n_topics=15)
    plan = PoolPlan(quotas=(("short", 8), ("words", 3)), uniform=1, seed=4)
    made = make_pool(targets, sources, plan)
    pool_files.write_pool(tmp_path / name, made)
    read = pool_files.read_pool(tmp_path / name)
    assert read.targets == made.targets
    assert read.slots == made.slots
    assert sorted(read.replacements, key=str) == sorted(made.replacements, key=str)
    assert {each.topic for each in read.dry} == {each.topic for each in made.dry}
    if name.endswith("json"):
        assert read == made


def test_a_pool_file_that_cannot_be_read_is_refused_by_line(file):
    rows = "q,t,a,,,,,\nq,other,b,,,,,\nq,t,c d,,,,,\nq,t,e,bm25,,,,\n"
    rows += "q,t,f,,x,a:1,because,-\nq,t,g,,x,a:1,target,\n"
    columns = "topic,target,docno,also,replaced,replaced_at,reason,resembles\n"
    path = file("pool.csv", columns + rows)
    with refused(PoolFileFaults, lines=[3, 4, 5, 6, 7]):
        pool_files.read_pool(path)


def lint(*arguments):
    out, refusal = StringIO(), ""
    try:
        call_command("lint_pool", *map(str, arguments), "--json", stdout=out)
    except PoolDefective as error:
        refusal = str(error)
    return json.loads(out.getvalue()), refusal


def places(faults, name):
    return [(each.line, each.docno) for each in faults if each.name == name]


def test_a_sound_pool_passes(tmp_path):
    targets, sources = synthetic_sources()
    pool = make_pool(targets, sources, PoolPlan(quotas=tuple(QUOTAS.items())))
    found = lint_pool(pool_files.table_of(pool))
    assert found.faults == ()
    assert set(found.checked) == {"repeat", "target", "hub", "short", "quota", "unlisted"}
    # A topic without a target is checked for repeats alone.
    pool = make_pool([Target("q")], [run_source("a", {"q": ["x"]})], PoolPlan(depth=3))
    found = lint_pool(pool_files.table_of(pool))
    assert found.faults == ()
    assert "short" not in found.checked


def test_a_target_that_no_source_knows_is_a_fault():
    """Its pool is of random documents alone, or empty; whose sources are not named is not asked."""
    run = run_source("bm25", {"1": "abc", "2": "bcd"})
    targets = [Target("1"), Target("2"), Target("99")]
    for uniform in (0, 1):
        pool = make_pool(targets, [run], PoolPlan(depth=2, uniform=uniform))
        [fault] = lint_pool(pool_files.table_of(pool)).faults
        assert (fault.name, fault.topic) == ("unlisted", "99")
    table = pool_files.table_of(pool)
    unnamed = replace(table, rows=tuple(replace(row, source="") for row in table.rows))
    assert "unlisted" not in lint_pool(unnamed).checked


def test_each_defect_is_named_with_its_line(file):
    rows = "q1,t,one,a,a q1,t,t,a,a q1,t,copy,a,a q1,t,one,b,a q1,t,two,b,b"
    rows += " q2,other,lost,a,a q2,other,foreign,a,a q2,other,plain,b,b"
    path = file("pool.csv", "\n".join(["topic,target,docno,source,quota", *rows.split()]))
    catalogue_path = catalogue_of_pictures(file)
    with catalogue_path.open("a") as catalogue:
        catalogue.write("\nplain,a shoe,\n")
    catalogue = read_catalogue(catalogue_path)
    found = lint_pool(pool_files.read_pool_table(path), catalogue=catalogue, per_topic=5).faults
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


def test_what_is_allowed_is_reported_and_does_not_refuse(file):
    path = file("pool.csv", "topic,target,docno\nq,t,a\nq,t,a\nq,t,t\n")
    record, refusal = lint(path, "--allow=repeat", "--allow=target")
    assert refusal == ""
    assert record["is_refused"] is False
    allowed = [(each["name"], each["allowed"]) for each in record["faults"]]
    assert allowed == [("repeat", True), ("target", True)]
    assert record["counts"]["content"]["n"] is None
    _, refusal = lint(path, "--allow=repeat")
    assert "(target)" in refusal
    unallowed = [fault for fault in record["faults"] if fault["name"] == "target"]
    assert [(fault["line"], fault["docno"]) for fault in unallowed] == [(4, "t")]


def test_the_plan_in_a_file_says_what_is_to_be_met(tmp_path):
    sources = [run_source("a", {"q": ["x"]}), run_source("b", {"q": ["x", "y", "z"]})]
    runs = []
    for source in sources:
        lines = [f"q Q0 {docno} 1 {-at} {source.name}" for at, docno in enumerate(source.documents)]
        (tmp_path / f"{source.name}.run").write_text("\n".join(lines))
        runs.append(f"--run={source.name}={tmp_path / source.name}.run")
    pool = tmp_path / "pool.json"
    command_output("pool_candidates", *runs, "--quota=a=2", "--quota=b=2", "--output", pool)
    record, refusal = lint(pool)
    named = [(each["name"], each["topic"]) for each in record["faults"]]
    assert named == [("quota", "q"), ("short", "q")]
    assert re.findall(r"\d+", record["faults"][1]["problem"]) == ["3", "4"]
    assert "pool.json" in refusal


def test_a_hub_is_named_unless_the_catalogue_is_small(file):
    rows = ["topic,docno"]
    rows += [f"q{topic},d{topic * 4 + slot}" for topic in range(30) for slot in range(4)]
    rows += [f"q{topic},hub" for topic in range(5)]
    [found] = lint_pool(pool_files.read_pool_table(file("pool.csv", "\n".join(rows)))).faults
    assert re.findall(r"\d+", found.problem) == ["5", "30"]
    assert replace(found, problem="") == PoolFault("hub", "", line=122, docno="hub")
    small = [f"q{topic},d{(topic + slot) % 12}" for topic in range(30) for slot in range(4)]
    table = pool_files.read_pool_table(file("small.csv", "\n".join(["topic,docno", *small])))
    assert lint_pool(table).faults == ()


def test_a_table_with_a_row_a_target_lacks_what_its_empty_cells_lack(file):
    path = file("hits.csv", "HIT,target,c1,c2,c10,comment\nh1,t,a,b,c,\nh2,t,a,,d,\n")
    table = pool_files.read_wide_table(path, target="target", candidates=["c*"])
    assert list(table.targets.items()) == [("t", "t"), ("t:3", "t")]
    [fault] = lint_pool(table).faults
    assert (fault.name, fault.topic) == ("short", "t:3")
    assert re.findall(r" (\d+)", fault.problem) == ["2", "3"]
    table = pool_files.read_wide_table(path, target="target", candidates=["c1", "c10"], topic="HIT")
    assert list(table.targets) == ["h1", "h2"]
    with refused_naming(PoolFileFaults, "hits.csv", " x"):
        pool_files.read_wide_table(path, target="target", candidates=["x*"])
    with refused_naming(CommandError, "--target", "--candidates"):
        command_output("lint_pool", path, "--target=target")


@pytest.mark.parametrize(("allowed", "code"), [((), 2), (("--allow=target",), 0)])
def test_a_shell_learns_of_a_defective_pool(file, capsys, allowed, code):
    path = file("pool.csv", "topic,target,docno\nq,t,a\nq,t,t\n")
    assert main(["manage.py", "lint_pool", str(path), *allowed]) == code
    assert ("pool.csv" in capsys.readouterr().err) == bool(code)
