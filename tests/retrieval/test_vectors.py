import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from metrics.exceptions import ModelUnfit
from retrieval.exceptions import PoolFileFaults, PoolUnfit
from retrieval.pools import encoding, records
from retrieval.pools.catalogue import read_catalogue
from retrieval.pools.sources import EmbeddingSource, nearest
from retrieval.pools.vectors import Vectors, read_vectors, write_vectors
from stats.ranking.pool_bias import hubness
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import record_of


def scores_by_numpy(queries, array, similarity):
    if similarity == "l2":
        return -np.square(queries[:, None, :] - array[None]).sum(axis=2)
    if similarity == "cosine":
        queries = queries / np.linalg.norm(queries, axis=1)[:, None]
        array = array / np.linalg.norm(array, axis=1)[:, None]
    return queries @ array.T


def named(array):
    return Vectors([f"d{number}" for number in range(len(array))], array)


@pytest.mark.parametrize("similarity", ["cosine", "inner", "l2"])
@pytest.mark.parametrize("block_rows", [64, 1000, 5000])
def test_neighbours_are_those_of_numpy_whatever_the_blocks(similarity, block_rows):
    array = np.random.default_rng(4).normal(size=(3000, 24)).astype(np.float32)
    queries = array[:150].astype(np.float64)
    own = np.arange(150)
    found = nearest(
        queries, named(array), 12, similarity=similarity, own=own, block_rows=block_rows
    )
    expected = scores_by_numpy(queries, array.astype(np.float64), similarity)
    expected[own, own] = -np.inf
    order = np.argsort(-expected, axis=1, kind="stable")[:, :12]
    np.testing.assert_array_equal(found.position, order)
    np.testing.assert_allclose(
        found.score, np.take_along_axis(expected, order, axis=1), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("similarity", ["cosine", "inner", "l2"])
def test_vectors_far_from_the_origin_keep_their_digits(similarity):
    """Of as many queries as make faiss use products, with lengths of 11,000 and distances of 16."""
    array = (1000 + np.random.default_rng(7).normal(size=(3000, 128))).astype(np.float32)
    some = np.arange(40)
    found = nearest(
        array[:1500], named(array), 10, similarity=similarity, own=np.arange(1500), block_rows=2000
    )
    expected = scores_by_numpy(array[some].astype(np.float64), array.astype(np.float64), similarity)
    expected[some, some] = -np.inf
    np.testing.assert_array_equal(found.position[some], np.argsort(-expected, axis=1)[:, :10])


def test_equally_near_neighbours_keep_their_order_and_zeros_are_nobodys():
    array = np.tile(np.eye(3, dtype=np.float32), (40, 1))
    for block_rows in (7, 120):
        found = nearest(np.eye(3)[:1], named(array), 5, similarity="l2", block_rows=block_rows)
        assert set(found.score[0].tolist()) == {0.0}
        assert (found.position[0] % 3 == 0).all()
    assert found.position[0].tolist() == sorted(found.position[0].tolist())
    array = np.array([[1, 0], [0, 0], [0, 1]], dtype=np.float32)
    found = nearest(np.array([[1.0, 0.5], [0.0, 0.0]]), named(array), 3, similarity="cosine")
    assert found.position.tolist() == [[0, 2, -1], [-1, -1, -1]]
    assert np.isnan(found.score[0, 2])


def test_vectors_that_are_not_finite_are_refused_by_name():
    array = np.ones((5, 2), dtype=np.float32)
    array[3, 1] = np.nan
    with refused_naming(ValueError, "d3", 4):
        nearest(np.ones((1, 2)), named(array), 1)
    for queries in (np.full((1, 2), np.inf), np.ones((1, 3))):
        with refused_naming(ValueError, "queries"):
            nearest(queries, named(np.ones((5, 2))), 1)


def test_gaussian_vectors_have_the_hubs_of_high_dimensions():
    """4,000 points in 256 dimensions: skewness about 8, a point in 500 lists, a third in none."""
    array = np.random.default_rng(0).normal(size=(4000, 256)).astype(np.float32)
    found = nearest(array, named(array), 10, similarity="l2", own=np.arange(4000))
    measured = hubness(found.position.ravel(), n_lists=4000, n_documents=4000)
    assert 6 < measured.skewness < 11
    assert 350 < measured.most < 800
    assert 0.26 < measured.anti_hubs < 0.32


def test_parquet_and_numpy_files_give_the_same_neighbours(tmp_path):
    array = np.random.default_rng(1).normal(size=(300, 6)).astype(np.float32)
    vectors = named(array)
    write_vectors(tmp_path / "v.npy", vectors)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), 6)
    for name, column in (("list", pa.array(array.tolist())), ("fixed", fixed)):
        table = pa.table({"shoe": vectors.names, "price": [1.0] * 300, "vector": column})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=70)
    targets = [records.Target(f"q{number}", f"d{number}") for number in range(5)]
    lists = []
    for name in ("v.npy", "list.parquet", "fixed.parquet"):
        read = read_vectors(tmp_path / name)
        assert read.names == vectors.names
        assert "sha256:" in read.signature
        np.testing.assert_array_equal(np.asarray(read.array), array)
        ranked = EmbeddingSource("v", read).lists(targets, 9)
        lists.append([ranked.of(number) for number in range(5)])
    assert lists[0] == lists[1] == lists[2]
    assert all(f"d{number}" not in listed for number, listed in enumerate(lists[0]))


@pytest.mark.parametrize(
    ("names", "line", "code"),
    [
        ("a\nb\na\n", 3, "twice"),
        ("a\nb c\nd\n", 2, "white_space"),
        ("a\n\nb\n", 2, "no_name"),
        ("a\nb\0\nc\n", 2, "nul"),
        ("a\nb\n", None, "n_names"),
    ],
)
def test_names_of_vectors_are_refused_by_line(tmp_path, file, names, line, code):
    np.save(tmp_path / "v.npy", np.ones((3, 2)))
    file("v.ids", names)
    with refused(PoolFileFaults, code, lines=[line]):
        read_vectors(tmp_path / "v.npy")


def test_files_that_hold_no_vectors_are_refused(tmp_path, file):
    np.save(tmp_path / "alone.npy", np.ones((3, 2)))
    for name, array in (
        ("whole", np.ones((3, 2), dtype=int)),
        ("nan", np.array([[1.0, 2.0], [np.nan, 1.0], [1e300, 0.0]])),
        ("huge", np.array([[1.0, 2.0], [1e300, 0.0]])),
        ("rowless", np.ones((0, 2))),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        file(f"{name}.ids", "a\nb\nc\n"[: 2 * len(array)])
    for name, names, cells in (
        ("flat", ["x"], [1.0]),
        ("uneven", ["x", "y"], [[1.0, 2.0], [1.0]]),
        ("texts", ["x"], [["x"]]),
        ("empty", ["x", "y"], pa.array([[], []], pa.list_(pa.float32()))),
        ("unnamed", ["x", None], [[1.0], [2.0]]),
    ):
        pq.write_table(pa.table({"a": names, "b": cells}), tmp_path / f"{name}.parquet")
    with (tmp_path / "lengthy.npy").open("wb") as lengthy:
        shape = {"descr": "<f4", "fortran_order": False, "shape": (10**30, 2)}
        np.lib.format.write_array_header_1_0(lengthy, shape)
    file("lengthy.ids", "a\n")
    header = b"{'descr': '<f4', 'shape': (2,".ljust(117) + b"\n"
    torn = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "torn.npy").write_bytes(torn)
    file("torn.ids", "a\n")
    file("text.npy", "1 2 3")
    for name, line, code in (
        ("texts.parquet", None, "columns"),
        ("empty.parquet", 1, "empty"),
        ("unnamed.parquet", 2, "no_name"),
        ("rowless.npy", None, "no_rows"),
        ("lengthy.npy", None, "unreadable"),
        ("torn.npy", None, "unreadable"),
        ("whole.npy", None, "not_floats"),
        ("nan.npy", 2, "not_finite"),
        ("huge.npy", 2, "not_finite"),
        ("alone.npy", None, "names_missing"),
        ("flat.parquet", None, "columns"),
        ("uneven.parquet", 2, "lengths_differ"),
        ("nothing.npy", None, "unreadable"),
        ("text.npy", None, "not_vectors"),
    ):
        with refused(PoolFileFaults, code, lines=[line]):
            read_vectors(tmp_path / name)


def test_topics_that_are_no_documents_have_vectors_of_their_own():
    documents = Vectors(["a", "b"], np.eye(2))
    source = EmbeddingSource("e", documents, "inner", Vectors(["q"], np.array([[0.2, 1.0]])))
    ranked = source.lists([records.Target("unknown"), records.Target("q")], 5)
    assert (ranked.of(0), ranked.of(1)) == ([], ["b", "a"])


@pytest.fixture(scope="module")
def words_encoder(tmp_path_factory):
    """A model without weights that counts four words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    folder = tmp_path_factory.mktemp("models") / "bag"
    model = SentenceTransformer(modules=[BoW(["red", "blue", "boot", "shoe"])], device="cpu")
    model.save(str(folder))
    return folder


@pytest.fixture(scope="module")
def picture_encoder(tmp_path_factory):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import ViTConfig, ViTImageProcessorPil, ViTModel

    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "image_size": 16, "patch_size": 4}
    config = ViTConfig(num_hidden_layers=1, num_attention_heads=2, **sizes)
    ViTModel(config).save_pretrained(folder / "vit")
    ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(folder / "vit")
    modules = [Transformer(str(folder / "vit")), Pooling(16)]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.save(str(folder / "pictures"), create_model_card=False)
    return folder / "pictures"


@pytest.fixture
def shoes(file):
    """Drawn shoes in a few colours; one has no title, one no picture."""
    colours = {"red": "#e00000", "red2": "#d80808", "blue": "#0000e0", "navy": "#0808c0"}
    rows = ["docno,title,image"]
    size = 'width="20" height="20"'
    for name, colour in colours.items():
        inside = f'<rect {size} fill="{colour}"/>'
        file(f"{name}.svg", f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{inside}</svg>')
        title = "" if name == "navy" else f"a {name.strip('2')} shoe"
        rows.append(f"{name},{title},{name}.svg")
    rows.append("words,a blue boot,")
    return file("catalogue.csv", "\n".join(rows))


def test_texts_are_embedded_by_a_model(shoes, words_encoder, tmp_path):
    vectors = encoding.encode_catalogue(read_catalogue(shoes), words_encoder, part="texts")
    assert vectors.names == ["red", "red2", "blue", "words"]
    assert "of:texts|model:bag|weights:" in vectors.signature
    np.testing.assert_array_equal(
        vectors.array, [[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    )
    write_vectors(tmp_path / "texts.npy", vectors)
    np.testing.assert_array_equal(read_vectors(tmp_path / "texts.npy").array, vectors.array)


def test_pictures_are_embedded_by_a_model(shoes, picture_encoder):
    vectors = encoding.encode_catalogue(read_catalogue(shoes), picture_encoder, part="pictures")
    assert vectors.names == ["red", "red2", "blue", "navy"]
    source = EmbeddingSource("pixels", vectors)
    ranked = source.lists([records.Target(name, name) for name in vectors.names], 1)
    assert [ranked.of(number) for number in range(4)] == [["red2"], ["red"], ["navy"], ["blue"]]


def test_a_model_that_reads_no_pictures_is_refused(shoes, words_encoder, picture_encoder, tmp_path):
    catalogue = read_catalogue(shoes)
    with refused_naming(PoolUnfit, words_encoder.name):
        encoding.encode_catalogue(catalogue, words_encoder, part="pictures")
    with refused_naming(PoolUnfit, picture_encoder.name):
        encoding.encode_catalogue(catalogue, picture_encoder, part="texts")
    with pytest.raises(ModelUnfit):
        encoding.encode_catalogue(catalogue, tmp_path / "nowhere", part="texts")


def test_a_pool_is_made_of_what_models_see_and_their_vectors_are_kept(
    shoes, words_encoder, picture_encoder, tmp_path
):
    targets = tmp_path / "targets.txt"
    targets.write_text("red\nblue\n")
    record = record_of(
        *("pool_candidates", "--catalogue", shoes, "--targets", targets),
        *(f"--pictures=pixels={picture_encoder}", f"--texts=words={words_encoder}"),
        *("--similarity=words=inner", "--quota=pixels=1", "--quota=words=1"),
        *("--save-vectors", tmp_path),
    )
    assert [source["name"] for source in record["sources"]] == ["words", "pixels"]
    assert "of:texts|model:bag" in record["sources"][0]["signature"]
    assert record["sources"][0]["signature"].endswith("similarity:inner")
    pooled = {(each["topic"], each["source"]): each["docno"] for each in record["slots"]}
    assert pooled["blue", "pixels"] == "navy"
    assert read_vectors(tmp_path / "pixels.npy").names == ["red", "red2", "blue", "navy"]
    with refused_naming(CommandError, "--texts", "words", "--catalogue"):
        record_of("pool_candidates", f"--texts=words={words_encoder}", "--depth=3")
