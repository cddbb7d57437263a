"""Pools: which candidates each target gets, from where, and what is passed over for them."""

from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from retrieval.exceptions import PoolFileFaults, PoolUnfit
from retrieval.pools.catalogue import Catalogue, Document, read_catalogue
from retrieval.pools.construction import make_pool
from retrieval.pools.pool_files import read_pool, write_pool
from retrieval.pools.records import Pool, PoolPlan, Target
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import WriteFile
from tests.retrieval.pool_sources import embedding_source, run_source, synthetic_sources

QUOTAS = {"bm25": 2, "dense": 2, "hybrid": 2, "short": 2, "pixels": 3, "words": 3}


@pytest.fixture(scope="module")
def pool() -> Pool:
    """200 targets of four runs and two embeddings over 5,000 documents, 14 candidates each."""
    targets, sources = synthetic_sources()
    return make_pool(targets, sources, PoolPlan(quotas=tuple(QUOTAS.items()), seed=1))


def docnos(pool: Pool, topic: str = "q") -> list[str]:
    return [slot.docno for slot in pool.by_topic()[topic]]


def test_every_target_has_fourteen_distinct_candidates_and_every_quota_is_met(pool: Pool):
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


def test_every_document_above_a_slot_in_its_list_is_a_slot_or_a_logged_replacement(pool: Pool):
    targets, sources = synthetic_sources()
    passed = {(each.topic, each.source, each.source_rank): each for each in pool.replacements}
    assert len(passed) == len(pool.replacements) > 100
    slots = {(slot.topic, slot.source, slot.source_rank): slot for slot in pool.slots}
    for source in sources:
        lists = source.lists(targets, 100)
        for number, target in enumerate(targets):
            listed = lists.of(number)
            deepest = max(
                slot.source_rank
                for slot in pool.slots
                if (slot.topic, slot.source) == (target.topic, source.name)
            )
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


def test_sources_take_turns_and_who_is_first_changes_by_topic(pool: Pool):
    firsts = set()
    for _, slots in groupby(pool.slots, lambda slot: slot.topic):
        turns = [slot.source for slot in slots]
        assert set(turns[:6]) == set(turns[6:12]) == set(QUOTAS)
        assert set(turns[12:]) == {"pixels", "words"}
        firsts.add(turns[0])
    assert firsts == set(QUOTAS)


def test_a_topic_is_pooled_by_itself_at_positions_that_say_nothing(pool: Pool):
    targets, sources = synthetic_sources()
    some = make_pool(targets[50:60], sources, PoolPlan(quotas=tuple(QUOTAS.items()), seed=1))
    topics = {target.topic for target in targets[50:60]}
    assert some.slots == tuple(slot for slot in pool.slots if slot.topic in topics)
    other = make_pool(targets[50:60], sources, PoolPlan(quotas=tuple(QUOTAS.items()), seed=2))
    assert other.slots != some.slots
    means = {
        source: np.mean([slot.position for slot in pool.slots if slot.source == source])
        for source in QUOTAS
    }
    for slots in pool.by_topic().values():
        assert sorted(slot.position for slot in slots) == list(range(1, 15))
    # 400 positions or more a source, of mean 7.5 and standard deviation 4.03.
    assert all(abs(mean - 7.5) < 0.7 for mean in means.values())


def test_a_list_that_ends_is_named_and_the_next_source_fills_its_slots():
    sources = [run_source("a", {"q": ["t", "x"]}), run_source("b", {"q": [*"xyzuv"]})]
    made = make_pool([Target("q", "t")], sources, PoolPlan(quotas=(("a", 3), ("b", 2))))
    assert len(set(docnos(made))) == 5
    [dry] = made.dry
    assert (dry.source, dry.quota, dry.n_listed, dry.filled_by) == (
        "a",
        3,
        2,
        ("b",) * dry.n_missing,
    )
    assert Counter(slot.quota for slot in made.slots) == {"a": 3, "b": 2}
    assert made.report["n_topics_with_quotas_unmet"] == 1
    passed = {(each.docno, each.source): each.reason for each in made.replacements}
    assert passed["t", "a"] == "target"


def test_a_pool_that_no_source_can_fill_is_short_and_says_so():
    made = make_pool(
        [Target("q", "t")], [run_source("a", {"q": ["t", "x"]})], PoolPlan(quotas=(("a", 3),))
    )
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
    made = make_pool(
        targets, [source], PoolPlan(quotas=(("a", 2),), uniform=3, seed=5), catalogue=catalogue
    )
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


def test_the_same_picture_is_pooled_once_and_never_that_of_the_target(file: WriteFile):
    path = catalogue_of_pictures(file)
    catalogue = read_catalogue(path)
    source = run_source("a", {"q": ["copy", "one", "two", "lost", "other", "foreign", "last"]})
    made = make_pool(
        [Target("q", "t")], [source], PoolPlan(quotas=(("a", 3),)), catalogue=catalogue
    )
    assert docnos(made) == ["one", "other", "last"]
    assert [(each.docno, each.reason, each.other) for each in made.replacements] == [
        ("copy", "target", "t"),
        ("two", "content", "one"),
        ("lost", "picture", ""),
        ("foreign", "unknown", ""),
    ]


def catalogue_of_pictures(file: WriteFile) -> Path:
    """`copy` shows what the target shows, `two` what `one` does, and `lost` has no picture."""
    for name, colour in (
        ("red", b"red"),
        ("blue", b"blue"),
        ("green", b"green"),
        ("grey", b"grey"),
    ):
        file(f"{name}.svg", b'<svg xmlns="http://www.w3.org/2000/svg" fill="' + colour + b'"/>')
        file(
            f"{name}-again.svg", b'<svg xmlns="http://www.w3.org/2000/svg" fill="' + colour + b'"/>'
        )
    rows = "t,red.svg copy,red-again.svg one,blue.svg two,blue-again.svg other,green.svg"
    rows += " lost,nowhere.svg last,grey.svg"
    lines = [row.replace(",", f",a shoe {at},") for at, row in enumerate(rows.split())]
    return file("catalogue.csv", "\n".join(["docno,title,image", *lines]))


def test_texts_that_differ_in_white_space_alone_are_the_same(file: WriteFile):
    path = file("catalogue.csv", "docno,title\na,red shoe\nb,red  shoe \nc,blue shoe\n")
    source = run_source("s", {"q": ["a", "b", "c"]})
    made = make_pool(
        [Target("q")], [source], PoolPlan(quotas=(("s", 2),)), catalogue=read_catalogue(path)
    )
    assert docnos(made) == ["a", "c"]


def test_a_capped_document_stands_in_no_more_pools_and_the_cap_is_logged():
    targets = [Target(f"q{number}") for number in range(30)]
    lists = {
        target.topic: ["hub", *(f"d{n}" for n in range(at, at + 9))]
        for at, target in enumerate(targets)
    }
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
    made = make_pool(
        [Target("q")],
        [run_source("a", {"q": [*"xyz"]})],
        PoolPlan(quotas=(("a", 2),)),
        excluded={"x"},
    )
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
    made = make_pool(
        [Target("q", "d595")],
        [embedding_source("e", names, array)],
        PoolPlan(quotas=(("e", 10),)),
        catalogue=catalogue,
    )
    assert len(made.slots) == 10
    assert {each.reason for each in made.replacements} == {"content"}
    assert max(slot.source_rank for slot in made.slots) > 400


@pytest.mark.parametrize(
    ("sources", "named"),
    [(["a", "a"], [" a"]), (["b"], [" a"]), (["a", "uniform"], ["'uniform'"]), ([], [])],
)
def test_sources_that_cannot_be_told_apart_are_refused(sources: list[str], named: list[str]):
    made = [run_source(name, {"q": ["x"]}) for name in sources]
    with refused_naming(PoolUnfit, *named):
        make_pool([Target("q")], made, PoolPlan(quotas=(("a", 1),)))


def test_a_plan_is_one_of_three_kinds():
    for wrong in ({}, {"depth": 3, "take": 4}, {"depth": -1}, {"quotas": (("a", 0),)}):
        with refused_naming(ValueError, *list(wrong)[:1]):
            PoolPlan(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["pool.csv", "pool.json"])
def test_a_pool_is_read_as_it_was_written(tmp_path: Path, name: str):
    targets, sources = synthetic_sources(n_topics=15)
    plan = PoolPlan(quotas=(("short", 8), ("words", 3)), uniform=1, seed=4)
    made = make_pool(targets, sources, plan)
    write_pool(tmp_path / name, made)
    read = read_pool(tmp_path / name)
    assert read.targets == made.targets
    assert read.slots == made.slots
    assert sorted(read.replacements, key=str) == sorted(made.replacements, key=str)
    assert {each.topic for each in read.dry} == {each.topic for each in made.dry}
    if name.endswith("json"):
        assert read == made


def test_a_pool_file_that_cannot_be_read_is_refused_by_line(file: WriteFile):
    path = file(
        "pool.csv",
        "topic,target,docno,also,replaced,replaced_at,reason,resembles\n"
        "q,t,a,,,,,\n"
        "q,other,b,,,,,\n"
        "q,t,c d,,,,,\n"
        "q,t,e,bm25,,,,\n"
        "q,t,f,,x,a:1,because,-\n"
        "q,t,g,,x,a:1,target,\n",
    )
    with refused(PoolFileFaults, lines=[3, 4, 5, 6, 7]):
        read_pool(path)
