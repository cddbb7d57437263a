import re

import pytest

from retrieval.answers.audit import audit_text
from retrieval.audit import collections, records
from retrieval.exceptions import NothingToAudit

POOLS = (
    "Input.target1,Input.top1,Input.top2,Input.top3,Input.top4,HITId,top1,top2,top3,top4\n"
    "boot,clog,pump,flat,sole,H1,True,False,False,False\n"  # as it should be
    "gown,coat,coat,skirt,sole,H2,True,False,False,False\n"  # one picture twice, judged both ways
    "sock,sock,clog,pump,sole,H3,True,False,True,False\n"  # the target itself, ticked
    "belt,belt,pump,flat,sole,H4,False,False,False,False\n"  # the target itself, not ticked
    "vest,clog,coat,coat,sole,H5,,,,\n"  # nobody judged
)
ALTERNATIVES = (
    "Input.target1,target_img_id,alternative_id_y,target_alt_id,qid\n"
    'boot,1,2,"u1,2-t0",u1-t0\n'
    'gown,3,"4,4","u3,4,4-t0",u3-t0\n'
    'sock,5,"5,6","u5,5,6-t0",u5-t0\n'
)
STARTS = 'qid,docno,docid,rank\n"u1,2-t0",clog,9,0\n"u3,4,4-t0",gown,3,0\n"u5,5,6-t0",pump,8,0\n'


@pytest.fixture
def pools(tmp_path):
    return written(tmp_path / "judged.csv", POOLS)


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def audited(path, **options):
    [one] = collections.audit_collection([path], **options).files
    return one


def finding(one, name):
    [found] = [found for found in one.findings if found.name == name]
    return found


def names(one):
    return {found.name for found in one.findings}


def test_repeats_own_targets_sizes_and_prevalence_of_pools_are_counted(pools):
    one = audited(pools)
    found = finding(one, "repeated_picture")
    assert (found.severity, found.n, found.of, found.lines) == ("defect", 2, 5, (3, 6))
    facts = one.facts["repeats"]
    assert facts["n_surplus"] == 2
    assert (facts["unique_least"], facts["unique_most"], facts["unique_mean"]) == (3, 4, 3.6)
    assert one.facts["own_targets"] == {"n_rows": 2, "n_ticked": 1}
    assert finding(one, "target_in_pool").lines == (4, 5)
    assert finding(one, "empty_judgments").lines == (6,)
    assert one.facts["sizes"]["n_assessed"] == 4
    assert (one.n_lines, one.n_rows) == (6, 5)
    released, cleaned = (one.facts[name] for name in ("sizes", "sizes_cleaned"))
    assert (released["n_judgments"], released["n_relevant"]) == (16, 4)
    assert released["n_with_relevant"] == 3
    assert released["mean_relevant"] == pytest.approx(4 / 3)
    assert released["mean_relevant_with_target"] == pytest.approx(4 / 3 + 1)
    assert released["mean_relevant_of_all"] == 1
    assert released["histogram"] == {"0": 1, "1": 2, "2": 1}
    # Coat once, relevant as it was ticked in either slot; sock and belt gone.
    assert (cleaned["n_judgments"], cleaned["n_relevant"], cleaned["n_with_relevant"]) == (13, 3, 3)
    rows = one.facts["positions"]
    assert [row["n_distinct"] for row in rows] == [4, 3, 3, 1]
    assert [row["prevalence"] for row in rows] == [0.75, 0, 0.25, 0]
    assert [row["n_judged"] for row in rows] == [4] * 4


def test_hubs_are_pictures_shown_for_a_tenth_of_the_targets(tmp_path):
    header = "Input.target1,Input.top1,Input.top2,HITId,top1,top2\n"
    rows = [
        f"t{n},{'hub' if n < 3 else f'c{n}'},d{n},H{n},{n == 0},{n in (1, 2)}\n" for n in range(30)
    ]
    hubs = audited(written(tmp_path / "judged.csv", header + "".join(rows))).facts["hubs"]
    assert hubs["n"] == 1
    assert hubs["largest"] == [{"picture": "hub", "n_targets": 3}]
    assert hubs["share_of_slots"] == pytest.approx(3 / 60)
    assert hubs["relevance"] == pytest.approx(1 / 3)
    assert hubs["relevance_elsewhere"] == pytest.approx(2 / 57)


def test_pictures_shown_twice_give_a_kappa_by_hit_and_a_reason_where_there_are_none(tmp_path):
    header = "Input.target1,Input.top1,Input.top2,HITId,top1,top2\n"
    marks = [(True, True)] * 4 + [(False, False)] * 4 + [(True, False), (False, True)]
    rows = [f"t{n},c{n},c{n},H{n},{a},{b}\n" for n, (a, b) in enumerate(marks)]
    one = audited(written(tmp_path / "judged.csv", header + "".join(rows)))
    consistency = one.facts["self_consistency"]
    assert (consistency["n_pairs"], consistency["n_different"]) == (10, 2)
    assert consistency["agreement"] == pytest.approx(0.8)
    assert consistency["kappa"] == pytest.approx(0.6)
    assert consistency["ci_low"] < 0.6 < consistency["ci_high"]
    one_row = "".join(POOLS.splitlines(keepends=True)[:2])
    consistency = audited(written(tmp_path / "judged.csv", one_row)).facts["self_consistency"]
    assert consistency["kappa"] is None
    assert consistency["reason"] == "no_overlap"


def test_positions_that_show_few_pictures_are_named(tmp_path):
    header = "Input.target1,Input.top1,Input.top2,Input.top3,HITId,top1,top2,top3\n"
    rows = [f"t{n},a{n},hub{n % 2},b{n},H{n},True,False,False\n" for n in range(20)]
    one = audited(written(tmp_path / "judged.csv", header + "".join(rows)))
    assert finding(one, "fixed_positions")
    assert [row["block"] for row in one.facts["positions"]] == [1, 1, 2]


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("boot,clog,pump,flat,sole,H1,yes,,,", ["top1", "'yes'"]),
        ("boot,clog,,flat,sole,H1,True,True,True,True", ["Input.top2"]),
        ("boot,clog", ["2", "10"]),
        (",clog,pump,flat,sole,H1,True,True,True,True", ["Input.target1"]),
    ],
)
def test_a_row_that_would_be_misread_is_refused_by_line(tmp_path, row, named):
    one = audited(written(tmp_path / "judged.csv", POOLS + row + "\n"))
    [refused] = one.of("refused")
    assert refused.lines == (7,)
    assert all(name in refused.text for name in named)
    assert one.facts["sizes"]["n_assessed"] == 4  # the others are counted


def test_rows_that_could_not_be_read_are_not_among_those_without_a_defect(tmp_path):
    """The refused row has a picture twice and the target itself, and was not looked at."""
    path = written(tmp_path / "judged.csv", POOLS + "coat,clog,clog,coat,sole,H6,yes,,,\n")
    audit = collections.audit_collection([path])
    assert (audit.totals["n_rows"], audit.totals["n_rows_refused"]) == (6, 1)
    assert (audit.totals["n_rows_with_repeats"], audit.totals["n_rows_with_target"]) == (2, 2)
    n_refused, without = len(audit.files[0].of("refused")), written(path, POOLS)
    n_lines = len(audit_text(collections.audit_collection([without])).splitlines())
    assert len(audit_text(audit).splitlines()) > n_lines + n_refused


def test_a_claim_is_explained_by_the_target_or_by_cleaned_sizes(pools):
    claims = {"judged.csv": {"mean_relevant": "2.3", "assessed": "6", "with_relevant": "3"}}
    mean, assessed, with_relevant = audited(pools, claims=claims).claims
    assert mean.explanation.startswith("1.33 + 1 = 2.33")
    assert "judged.csv" in assessed.explanation
    assert with_relevant.holds
    assert not mean.holds
    [claim] = audited(pools, claims={"judged.csv": {"mean_relevant": "9.9"}}).claims
    assert claim.explanation == records.UNEXPLAINED
    cleaned = audited(pools).facts["sizes_cleaned"]
    names = ("judged_per_topic", "prevalence", "mean_relevant_of_all")
    per_topic, prevalence, of_all = (f"{cleaned[name]:.3f}" for name in names)
    claims = {"judged_per_topic": per_topic, "prevalence": prevalence, "mean_relevant": of_all}
    found = audited(pools, claims={"judged.csv": claims}).claims
    assert [each.explanation for each in found[:2]] == [
        f"{per_topic} {records.CLEANED}",
        f"{prevalence} {records.CLEANED}",
    ]
    assert found[2].explanation.startswith(f"{of_all} ")


def test_alternatives_explain_a_claim_and_targets_among_them_are_counted(tmp_path, pools):
    written(tmp_path / "alternatives.csv", ALTERNATIVES)
    audit = collections.audit_collection([tmp_path], claims={"judged.csv": {"with_relevant": "4"}})
    explanation = audit.files[0].claims[0].explanation
    assert "alternatives.csv" in explanation
    assert re.findall(r"\d+", explanation) == ["4", "3"]
    written(tmp_path / "starts.csv", STARTS)
    _, alternatives, starts = collections.audit_collection([tmp_path]).files
    for one in (alternatives, starts):
        assert finding(one, "target_is_alternative").lines == (4,)
        assert finding(one, "alternative_twice").lines == (3,)
    assert finding(starts, "starts_at_target").lines == (3,)
    assert (finding(starts, "same_topics").n, finding(starts, "same_topics").of) == (3, 3)
    # Gown's coat was ticked once and is listed twice.
    assert finding(alternatives, "other_ticks").lines == (3,)


def test_a_topic_name_that_contradicts_its_columns_is_refused(tmp_path):
    text = ALTERNATIVES.replace('"u1,2-t0"', '"u1,3-t0"') + "belt,x,7,u,u\n"
    named, number = audited(written(tmp_path / "alternatives.csv", text)).of("refused")
    assert (named.lines, number.lines) == ((2,), (5,))
    assert "target_alt_id" in named.text
    assert "u1,2-t0" in named.text
    assert "target_img_id" in number.text


def test_each_kind_of_file_is_recognised_by_its_columns(tmp_path, pools):
    texts = {
        "alternatives": ALTERNATIVES,
        "dialogue starts": STARTS,
        "batch": "HITId,WorkerId,Input.text,Answer.tone\nH1,W1,a,4\n",
        "qrels": "# a comment\n1 0 a 1\n1 0 b 0\n",
        "run": "1 Q0 a 1 2.5 x\n",
        "unknown": "A text of some words.\n",
    }
    assert collections.recognise(pools) == "judged pools"
    for kind, text in texts.items():
        assert collections.recognise(written(tmp_path / kind, text)) == kind


def test_qrels_are_refused_by_line_and_what_they_lack_is_counted(tmp_path):
    one = audited(written(tmp_path / "qrels.txt", "1 0 a 1\n1 0 b 1.5\n1 0 a 0\n2 0 c 1\n"))
    assert [found.lines for found in one.of("refused")] == [(2,), (3,)]
    assert one.is_refused
    one = audited(written(tmp_path / "qrels.txt", "1 A a 1\n1 B a 0\n"))
    assert "several_assessors" in names(one)
    text = "1 0 a 1\n1 0 1 1\n2 0 a 0\n3 0 a -1\n07 0 x 1\n7 0 x 1\n"
    one = audited(written(tmp_path / "qrels.txt", text))
    assert finding(one, "empty_judgments").n == 1
    assert finding(one, "nothing_relevant").n == 2
    assert finding(one, "target_in_pool").n == 1
    assert "07 and 7" in finding(one, "similar_topics").text
    assert one.facts["n_negative"] == 1


def test_a_run_is_held_against_the_qrels_and_no_common_topic_is_a_defect(tmp_path):
    written(tmp_path / "a.qrels", "1 0 a 1\n1 0 b 0\n2 0 a 1\n3 0 a 1\n")
    run = "1 Q0 a 1 .9 x\n1 Q0 z 2 .9 x\n2 Q0 a 1 1 x\n2 Q0 b 2 3 x\n9 Q0 a 1 inf x\n"
    written(tmp_path / "b.run", run)
    _, one = collections.audit_collection([tmp_path]).files
    for name in ("missing_topics", "foreign_topics", "infinite_scores", "tied_scores"):
        assert finding(one, name).n == 1, name
    assert finding(one, "ranks_contradict_scores").lines == (4,)
    assert one.facts["judged_at_10"] == [{"qrels": "a.qrels", "judged": 0.5, "n_topics": 2}]
    written(tmp_path / "a.qrels", "07 0 a 1\n")
    written(tmp_path / "b.run", "7 Q0 a 1 2 x\n")
    _, one = collections.audit_collection([tmp_path]).files
    assert {"no_common_topic", "similar_topics"} <= names(one)


def test_a_batch_names_assignments_twice_and_says_that_it_names_workers(tmp_path):
    text = "HITId,AssignmentId,WorkerId,AssignmentStatus\nH1,A1,W1,Approved\nH1,A1,W1,Approved\n"
    one = audited(written(tmp_path / "batch.csv", text))
    assert {"assignment_twice", "worker_twice", "workers_named"} == names(one)
    assert one.facts["statuses"] == {"Approved": 2}
    assert "W1" not in str(one.record())


def test_nothing_to_audit_is_reported(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(NothingToAudit):
            collections.audit_collection([path])


PUBLISHED = {
    "judged_targets_shoes.csv": {
        "rows": 200,
        "repeats": {"n_rows": 76, "n_surplus": 91, "n_within_block": 85},
        "unique": (11, 14, 13.5),
        "own_targets": {"n_rows": 40, "n_ticked": 20},
        "n_empty_rows": 0,
        "hubs": (19, 0.554, 0.087, 0.274),
        "distinct": [171, 183, 186, 38, 15, 10, 18, 122, 170, 176, 48, 9, 11, 14],
        "prevalence": [
            *(0.36, 0.365, 0.355, 0.12, 0.075, 0.09, 0.155),
            *(0.215, 0.21, 0.16, 0.10, 0.095, 0.06, 0.025),
        ],
        "pairs": (13, 91, 0.857, 0.616),
        "released": (2800, 477, 190, 2.51, 3.51, 2.385, 0.170),
        "cleaned": (2669, 441, 180, 2.45),
    },
    "judged_targets_dresses.csv": {
        "rows": 199,
        "repeats": {"n_rows": 52, "n_surplus": 65, "n_within_block": 47},
        "unique": (11, 14, 13.7),
        "own_targets": {"n_rows": 11, "n_ticked": 4},
        "n_empty_rows": 2,
        "hubs": (22, 0.551, 0.142, 0.190),
        "distinct": [123, 142, 142, 27, 11, 16, 18, 97, 126, 143, 38, 14, 14, 17],
        "prevalence": None,
        "pairs": (17, 66, 0.742, 0.284),
        "released": (2758, 451, 180, 2.51, 3.51, 2.289, 0.164),
        "cleaned": (2682, 440, 179, 2.46),
    },
}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_fashion_altereval_has_the_defects_that_were_counted_of_it(shared_data, name):
    expected = PUBLISHED[name]
    one = audited(shared_data / "altereval" / name)
    facts = one.facts
    assert one.n_rows == expected["rows"]
    assert {key: facts["repeats"][key] for key in expected["repeats"]} == expected["repeats"]
    unique = (facts["repeats"][f"unique_{of}"] for of in ("least", "most", "mean"))
    assert tuple(round(value, 1) for value in unique) == expected["unique"]
    assert facts["own_targets"] == expected["own_targets"]
    assert facts["n_empty_rows"] == expected["n_empty_rows"]
    hubs = facts["hubs"]
    shares = ("n", "share_of_slots", "relevance", "relevance_elsewhere")
    assert tuple(round(hubs[key], 3) for key in shares) == expected["hubs"]
    assert [row["n_distinct"] for row in facts["positions"]] == expected["distinct"]
    if expected["prevalence"]:
        prevalence = [row["prevalence"] for row in facts["positions"]]
        assert prevalence == pytest.approx(expected["prevalence"], abs=5e-4)
    pairs = facts["self_consistency"]
    assert (
        *(pairs["n_different"], pairs["n_pairs"]),
        *(round(pairs[key], 3) for key in ("agreement", "kappa")),
    ) == expected["pairs"]
    released, cleaned = facts["sizes"], facts["sizes_cleaned"]
    assert (
        *(released[key] for key in ("n_judgments", "n_relevant", "n_with_relevant")),
        *(round(released[key], 2) for key in ("mean_relevant", "mean_relevant_with_target")),
        *(round(released[key], 3) for key in ("mean_relevant_of_all", "prevalence")),
    ) == expected["released"]
    assert (
        *(cleaned[key] for key in ("n_judgments", "n_relevant", "n_with_relevant")),
        round(cleaned["mean_relevant"], 2),
    ) == expected["cleaned"]


@pytest.mark.shared_data
def test_fashion_altereval_s_claims_are_explained_and_own_targets_reach_the_simulator(shared_data):
    audit = collections.audit_collection([shared_data / "altereval"])
    files = {one.path.name: one for one in audit.files}
    claims = {
        (name, claim.name): claim.explanation for name, one in files.items() for claim in one.claims
    }
    of_shoes = {name: text for (file, name), text in claims.items() if "shoes" in file}
    target = of_shoes.pop("mean_relevant")
    assert target.startswith("2.51 + 1 = 3.51")
    assert of_shoes == {"assessed": "", "with_relevant": "", "judged_per_topic": ""}
    of_dresses = {name: text for (file, name), text in claims.items() if "dresses" in file}
    assert of_dresses["mean_relevant"] == target
    assert re.findall(r"\d+", of_dresses["assessed"])[-2:] == ["197", "199"]
    assert of_dresses["with_relevant"].startswith("181 ")
    assert "alter_target_ids" in of_dresses["with_relevant"]
    assert audit.totals == {
        "n_rows": 399,
        "n_rows_refused": 0,
        "n_rows_with_repeats": 128,
        "n_rows_with_target": 51,
        "n_empty_rows": 2,
    }
    for of_pools, of_starts, n_own, n_first, n_twice, n_topics in (
        ("shoes", "shoes", 20, 13, 14, 190),
        ("dresses", "dress", 4, 1, 7, 180),
    ):
        alternatives = files[f"alter_target_ids_{of_pools}.csv"]
        starts = files[f"input_{of_starts}_CRS_df.csv"]
        for one in (alternatives, starts):
            own = finding(one, "target_is_alternative")
            assert (own.n, own.of) == (n_own, n_topics)
            assert re.findall(r"\d+", own.text)[-1] == str(n_first)
            assert finding(one, "alternative_twice").n == n_twice
        assert finding(alternatives, "same_ticks").n == n_topics
        assert finding(starts, "same_topics").n == n_topics


def test_what_was_published_is_known_of_the_very_file_alone(tmp_path):
    assert audited(written(tmp_path / "judged_targets_shoes.csv", POOLS)).claims == ()


def test_targets_judged_several_times_have_no_more_alternatives_than_were_ticked(tmp_path):
    pools = (
        "Input.target1,Input.top1,Input.top2,HITId,WorkerId,top1,top2\n"
        "boot,clog,pump,H1,W1,True,True\nboot,clog,pump,H1,W2,True,False\n"
        "gown,coat,sole,H2,W1,True,False\nsock,clog,pump,H3,W1,True,False\n"
    )
    written(tmp_path / "judged.csv", pools)
    header = ALTERNATIVES.splitlines()[0]
    rows = 'boot,1,2,"u1,2-t0",u1-t0\ngown,3,"4,5","u3,4,5-t0",u3-t0\n'
    written(tmp_path / "alternatives.csv", f"{header}\n{rows}")
    pool_file, alternatives = collections.audit_collection([tmp_path]).files
    assert finding(alternatives, "other_ticks").lines == (3,)
    assert finding(alternatives, "lost_targets").severity == "note"
    assert "one_assessor" not in names(pool_file)
