import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from django.core.management import CommandError

from simulation import critics, exceptions, recommenders, users
from simulation.catalogue import Catalogue, from_judgments, targets_of
from simulation.dialogues import simulate
from simulation.drawn_products import KINDS, drawn_catalogue, stand_in_catalogue, title
from simulation.product_files import read_fashion_iq, read_folder, read_shoes, read_sprite
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.simulation.conftest import line_catalogue, neighbours, write_qrels


def test_a_smaller_drawn_catalogue_is_the_beginning_of_a_larger_one():
    small, large = drawn_catalogue(50), drawn_catalogue(400)
    assert large.ids[:50] == small.ids
    assert (large.embeddings[:50] == small.embeddings).all()
    assert not (drawn_catalogue(50, seed=1).embeddings == small.embeddings).any()


def test_the_words_of_a_drawn_product_name_each_of_its_attributes():
    attributes = drawn_catalogue(400).attributes
    assert attributes is not None
    for item in range(400):
        described = attributes.describe(item)
        parts = {
            " ".join(described[name] for name in ("colour", "pattern", "material", "category")),
            f"{described['toe']} toe",
            f"{'no' if described['heel'] == 'none' else described['heel']} heel",
            f"{described['sole']} sole",
            described["strap"],
        }
        assert set(title(described).split(", ")) == parts


def test_every_value_of_every_attribute_can_be_drawn_as_a_picture():
    catalogue = drawn_catalogue(400)
    attributes = catalogue.attributes
    assert attributes is not None
    assert catalogue.picture is not None
    for column, kind in enumerate(KINDS):
        for code in range(len(kind.values)):
            item = int(np.flatnonzero(attributes.codes[:, column] == code)[0])
            root = ElementTree.fromstring(catalogue.picture(item))
            assert root.tag.endswith("svg")
            words = "".join(root.itertext())
            assert attributes.describe(item)["colour"] in words


def test_distances_are_exact_and_repeats_may_be_excluded():
    catalogue = drawn_catalogue(300)
    a, b = np.random.default_rng(0).integers(0, 300, size=(2, 500))
    gaps = (catalogue.positions[a] - catalogue.positions[b])[:, ::-1]
    assert (catalogue.squared_distance(a, b) == (gaps**2).sum(axis=1)).all()
    assert np.abs(catalogue.positions).max() <= 1
    targets, critic = neighbours(catalogue, 20), critics.AttributeCritic(catalogue)
    for recommender in (
        recommenders.EmbeddingRecommender(catalogue, critic),
        recommenders.RandomRecommender(catalogue),
    ):
        log = simulate(catalogue, targets, [users.sim_base()], recommender, critic, repeats=False)
        shown = np.sort(log.shown[0, 0], axis=1)
        assert (shown[:, 1:] != shown[:, :-1]).all()


def test_the_best_items_are_those_of_a_full_sort_ties_by_position():
    rng = np.random.default_rng(0)
    for n_items, depth, levels in ((3000, 10, 50), (3000, 10, 10**6), (700, 3, 4), (90, 10, 5)):
        scores = rng.integers(0, levels, size=(40, n_items)).astype(float)
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        assert (recommenders.top_items(scores, depth) == expected).all()


def test_nearest_items_do_not_depend_on_the_batch():
    catalogue = drawn_catalogue(3000)
    points = np.random.default_rng(0).normal(size=(300, 64)) / 8
    together = recommenders.nearest_items(points, catalogue.positions, 10)
    one_by_one = [
        recommenders.nearest_items(point[None], catalogue.positions, 10)[0] for point in points
    ]
    assert (together == np.array(one_by_one)).all()
    gaps = points[:, None] - catalogue.positions[:500]
    assert (
        recommenders.nearest_items(points, catalogue.positions[:500], 1)[:, 0]
        == (gaps**2).sum(axis=2).argmin(axis=1)
    ).mean() > 0.99


def test_critiques_name_what_differs_and_directions_point_to_the_wanted():
    catalogue = drawn_catalogue(500)
    assert catalogue.attributes is not None
    critic = critics.AttributeCritic(catalogue)
    shown, wanted = np.random.default_rng(0).integers(0, 500, size=(2, 200))
    [same] = critic.texts(shown[:1], shown[:1])
    for text, a, b in zip(critic.texts(shown, wanted), shown, wanted, strict=True):
        has, wants = catalogue.attributes.describe(a), catalogue.attributes.describe(b)
        for part in text.split(" and "):
            if part.startswith("is ") and part != same:
                value = part.removeprefix("is ")
                assert value in wants.values()
                assert value not in has.values()
            elif "heel" in part:
                heels = KINDS[6].values
                rises = heels.index(wants["heel"]) > heels.index(has["heel"])
                assert part.split()[-2] == ("higher" if rises else "lower")
    vectors = critic.vectors(shown, wanted)
    assert (np.abs(vectors).sum(axis=1) <= 4).all()
    assert (critic.vectors(shown, shown) == 0).all()
    critic = critics.DirectionCritic(catalogue)
    vectors = critic.vectors(shown, wanted)
    assert (critic.vectors(wanted, shown) == -vectors).all()
    assert (np.abs(vectors).sum(axis=1)[shown != wanted] == 3).all()
    assert critic.texts(shown[:1], wanted[:1])[0].count("direction") == 3


def test_the_sprite_is_a_catalogue_whose_neighbours_are_of_one_class(shared_data):
    catalogue = read_sprite(shared_data / "fashion_mnist" / "fashion-mnist-sprite.png")
    assert len(catalogue) == 900
    assert catalogue.picture is not None
    assert catalogue.picture(0).startswith(b"\x89PNG")
    nearest = recommenders.nearest_items(catalogue.positions, catalogue.positions, 5)
    assert (nearest[:, 0] == np.arange(900)).mean() > 0.99
    same = (nearest[:, 1:] // 90 == np.arange(900)[:, None] // 90).mean()
    assert same > 0.65
    text = critics.AttributeCritic(catalogue).texts(np.array([0]), np.array([899]))[0]
    assert "ankle boot" in text


def write_folder(folder, **files: str | np.ndarray):
    folder.mkdir(exist_ok=True)
    content: dict[str, str | np.ndarray] = {
        "ids.txt": "a\nb\nc\n",
        "embeddings.npy": np.eye(3),
        "attributes.csv": "id,colour,heel\nb,red,2.5\na,blue,1\nc,red,9\n",
    }
    for name, value in (content | {k.replace("__", "."): v for k, v in files.items()}).items():
        if isinstance(value, str):
            (folder / name).write_text(value)
        else:
            np.save(folder / name, value)
    return folder


def test_a_folder_is_read_with_attributes_in_any_order_of_lines(tmp_path):
    catalogue = read_folder(write_folder(tmp_path / "shop"))
    assert catalogue.attributes is not None
    assert catalogue.attributes.describe(0) == {"colour": "blue", "heel": "level 1"}
    assert catalogue.attributes.describe(2) == {"colour": "red", "heel": "level 3"}
    [critique] = critics.AttributeCritic(catalogue).texts(np.array([0]), np.array([2]))
    assert re.findall("more heel|red", critique) == ["more heel", "red"]


def coloured(lines):
    return {"attributes__csv": f"id,colour\n{lines}\n"}


@pytest.mark.parametrize(
    ("files", "code", "named"),
    [
        ({"embeddings__npy": np.eye(4)}, "n_rows", ["embeddings.npy", 4, 3]),
        ({"embeddings__npy": np.array([[1.0], [np.nan], [0.0]])}, "not_finite", [" b "]),
        ({"embeddings__npy": np.zeros(3)}, "not_a_matrix", ["embeddings.npy"]),
        ({"embeddings__npy": np.zeros((3, 0))}, "no_columns", ["embeddings.npy"]),
        ({"embeddings__npy": np.ones((3, 2))}, "all_alike", [3]),
        ({"ids__txt": "a\nb\x00\nc\n"}, "unstorable", ["Line 2", "ids.txt"]),
        ({"ids__txt": "a\na\nc\n"}, "id_twice", [" a "]),
        ({"ids__txt": "a\n\nc\n"}, "empty_id", ["Line 2", "ids.txt"]),
        (coloured("a,red\nb,red"), "no_line", ["attributes.csv", " c"]),
        (coloured("a,red\nb,\nc,red"), "unstorable_value", ["attributes.csv", " b", "colour"]),
        (coloured("a,red\nb,\x00\nc,red"), "nul", ["attributes.csv", "Line 3", "colour"]),
        (coloured("a,red\nb,blue\na,blue\nc,red"), "line_twice", ["attributes.csv", "line 4"]),
        (coloured("a,red\nb,red\nc,red"), "no_difference", []),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, files, code, named):
    with refused(exceptions.CatalogueUnfit, code) as error:
        read_folder(write_folder(tmp_path / "shop", **files))
    assert all(str(name) in str(error.value) for name in named)


@pytest.mark.parametrize("factor", [1e200, 1e-200, 1e-300])
def test_positions_do_not_depend_on_the_unit_of_the_embeddings(factor):
    embeddings = np.random.default_rng(0).normal(size=(50, 8))
    ids = tuple(map(str, range(50)))
    positions = Catalogue(ids, embeddings * factor, "x").positions
    np.testing.assert_allclose(positions, Catalogue(ids, embeddings, "x").positions, atol=1e-6)


def test_embeddings_must_differ_and_shared_attributes_are_named_in_no_critique(tmp_path):
    ids, embeddings = "".join(f"p{n}\n" for n in range(20)), np.eye(20)
    folder = write_folder(tmp_path / "shop", ids__txt=ids, embeddings__npy=embeddings * 1e9)
    (folder / "attributes.csv").unlink()
    assert len(read_folder(folder)) == 20
    embeddings[3] = 1e9
    np.save(folder / "embeddings.npy", embeddings)
    with refused_naming(exceptions.CatalogueUnfit, " p3 ", " 2 "):
        read_folder(folder)
    attributes = "id,heel,height\na,5,-1.7e308\nb,5,1\nc,5,1.7e308\n"
    catalogue = read_folder(write_folder(tmp_path / "shop", attributes__csv=attributes))
    texts = critics.AttributeCritic(catalogue).texts(np.array([0, 1]), np.array([2, 0]))
    assert [text.split()[-2:] for text in texts] == [["more", "height"], ["less", "height"]]


def test_a_missing_file_is_named_without_its_folder(tmp_path):
    for read in (lambda: read_sprite(tmp_path / "x.png"), lambda: read_folder(tmp_path)):
        with pytest.raises(exceptions.CatalogueUnfit) as error:
            read()
        assert str(tmp_path) not in str(error.value)


def test_the_layouts_of_shoes_and_fashion_iq(tmp_path):
    features = tmp_path / "features.npy"
    np.save(features, np.eye(2, dtype=np.float32))
    (tmp_path / "eval_im_names.txt").write_text("img_1.jpg\nimg_2.jpg\n")
    (tmp_path / "split.dress.val.json").write_text(json.dumps(["B01", "B02"]))
    assert read_shoes(tmp_path / "eval_im_names.txt", features).ids == ("img_1.jpg", "img_2.jpg")
    assert read_fashion_iq(tmp_path / "split.dress.val.json", features).ids == ("B01", "B02")
    split = tmp_path / "split.dress.val.json"
    for content, entry in (
        ("{}", ""),
        ('["B01", ""]', "Entry 2"),
        ('["\\ud800", "B02"]', "Entry 1"),
        ("[" * 200_000, ""),
    ):
        split.write_text(content)
        with refused_naming(exceptions.CatalogueUnfit, split.name, entry):
            read_fashion_iq(split, features)


@pytest.mark.parametrize(
    ("alternatives", "starts", "named"),
    [
        ({}, None, []),
        ({"p1": ["x"]}, None, ["1 "]),
        ({"p1": []}, {}, [" p1 "]),
        ({"p1": []}, {"p1": "x"}, [" x ", " p1 "]),
    ],
)
def test_targets_that_do_not_fit_are_refused(alternatives, starts, named):
    with refused_naming(exceptions.TargetsUnfit, *named):
        targets_of(line_catalogue(), alternatives, starts=starts)


def test_qrels_become_alternatives_in_the_order_of_their_lines():
    accepted, rejected = from_judgments(
        ["t1", "t2"],
        ["a", "b", "c"],
        np.array([0, 0, 0, 1]),
        np.array([2, 0, 1, 1]),
        np.array([1, 2, 0, -1]),
    )
    assert accepted == {"t1": ["c", "a"], "t2": []}
    assert rejected == {"t1": ["b"], "t2": []}


def test_stand_ins_are_marked_and_depend_on_the_id_alone():
    catalogue = stand_in_catalogue(["a", "b", "c"], ["boots", "clogs", "boots"])
    assert catalogue.is_stand_in
    assert catalogue.attributes is not None
    turned = stand_in_catalogue(["c", "a", "b"], ["boots", "boots", "clogs"])
    assert turned.attributes is not None
    assert (turned.attributes.codes[[1, 2, 0]] == catalogue.attributes.codes).all()
    assert len({catalogue.attributes.codes[n, 0] for n in (0, 2)}) == 1


CAPTIONS = ["is a red sneaker", "has a much higher heel", "are blue with a strap", "is shinier"]


def test_the_nearest_caption_is_said_for_a_critique():
    catalogue = drawn_catalogue(300)
    critic = critics.CaptionCritic(critics.AttributeCritic(catalogue, n_named=1), CAPTIONS)
    critic.nearest.clear()
    numbers = critic._numbers(["is sneaker", "has a higher heel", "is blue", "is dotted", "xyz"])
    assert numbers.tolist()[:3] == [0, 1, 2]
    assert numbers[4] == -1
    shown, wanted = np.arange(100), np.arange(100, 200)
    texts, vectors = critic.texts(shown, wanted), critic.vectors(shown, wanted)
    own = critics.AttributeCritic(catalogue, n_named=1).texts(shown, wanted)
    for text, plain, vector in zip(texts, own, vectors, strict=True):
        if vector.any():
            assert text in CAPTIONS
            assert np.linalg.norm(vector) == pytest.approx(1)
            assert set(text.split()) & set(plain.split())
        else:
            assert text == plain


def test_captions_of_shoes_and_of_fashion_iq(tmp_path):
    path = tmp_path / "captions.json"
    path.write_text(json.dumps([{"RelativeCaption": " is red "}, {"captions": ["is longer", "a"]}]))
    assert [one.text for one in critics.read_captions(path)] == ["is red", "is longer", "a"]
    for content, entry in (
        ("{", ""),
        ("[]", ""),
        ('[{"RelativeCaption": "x"}, {"text": "y"}]', "Record 2"),
        ('[{"RelativeCaption": " "}]', ""),
        ("[" * 200_000, ""),
        ('[{"RelativeCaption": "is red \\ud800"}]', "Record 1"),
    ):
        path.write_text(content)
        with refused_naming(exceptions.CaptionsUnfit, path.name, entry):
            critics.read_captions(path)


def test_captions_without_words_that_come_often_are_compared_by_all_their_words():
    critic = critics.AttributeCritic(drawn_catalogue(60))
    many = critics.CaptionCritic(critic, [f"is number{number}" for number in range(150)])
    assert many.width == 1  # "is" alone comes three times
    rare = critics.CaptionCritic(critic, [f"word{number}" for number in range(150)])
    assert rare.width == 150
    with pytest.raises(exceptions.CaptionsUnfit):
        critics.CaptionCritic(critic, ["!", "a"])


def test_without_attributes_the_caption_of_the_pair_most_alike_is_said():
    catalogue = drawn_catalogue(400)
    critic = critics.AttributeCritic(catalogue, n_named=1)
    shown, wanted = np.random.default_rng(0).integers(0, 400, size=(2, 3000))
    texts = critic.texts(shown, wanted)
    rows = [
        critics.RelativeCaption(text, catalogue.ids[a], catalogue.ids[b])
        for text, a, b in zip(texts, shown, wanted, strict=True)
    ]
    bare = replace(catalogue, attributes=None)
    paired = critics.PairedCaptionCritic(bare, rows)
    # Pairs that were captioned are said what was said of them, or of a pair just alike.
    different = shown != wanted
    assert (np.array(paired.texts(shown, wanted)) == texts)[different].mean() > 0.99
    a, b = np.random.default_rng(1).integers(0, 400, size=(2, 400))
    said, true = np.array(paired.texts(a, b)), np.array(critic.texts(a, b))
    by_chance = (np.random.default_rng(2).permutation(said) == true).mean()
    assert (said == true).mean() > 2 * by_chance
    one_by_one = [paired.texts(a[n : n + 1], b[n : n + 1])[0] for n in range(50)]
    assert one_by_one == said[:50].tolist()
    assert not paired.vectors(a[:1], a[:1]).any()
    with refused_naming(exceptions.CaptionsUnfit, " 0 "):
        critics.PairedCaptionCritic(bare, [critics.RelativeCaption("is red", "x", "y")])


def trained(*arguments):
    options = ("--catalogue", "drawn:300", "--width", "16", "--turns", "3", "--epochs", "2")
    return command_output("train_recommender", *options, *arguments)


def test_a_recommender_is_trained_on_captions_and_simulated(tmp_path):
    captions, checkpoint = tmp_path / "captions.json", tmp_path / "mine.pt"
    captions.write_text(json.dumps([{"RelativeCaption": text} for text in CAPTIONS]))
    arguments = ("--kind", "gru-sl", "--output", checkpoint, "--captions", captions)
    trained(*arguments)
    record = json.loads(trained(*arguments, "--json"))
    assert len(record["history"]) == 2
    assert record["trained_with"]["source"] == "captions.json"
    catalogue = drawn_catalogue(300)
    qrels = write_qrels(tmp_path / "qrels.txt", catalogue, neighbours(catalogue, 10))
    options = ("--catalogue", "drawn:300", "--qrels", qrels, "--recommender", checkpoint)
    result = json.loads(command_output("simulate", *options, "--captions", captions, "--json"))
    assert result["recommenders"][0]["training"]["kind"] == "gru-sl"
    with refused(exceptions.CheckpointUnfit, "other_critic"):
        command_output("simulate", *options)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--kind", "gru-rl"), "start_from"),
        (("--kind", "ege", "--learning-rate", "0"), "learning_rate"),
    ],
)
def test_training_that_cannot_be_is_refused(tmp_path, arguments, named):
    with refused_naming(CommandError, named):
        trained("--output", tmp_path / "x.pt", *arguments)
