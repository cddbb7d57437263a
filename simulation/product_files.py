"""Catalogues from files: a folder of our own, and the layouts of Shoes and FashionIQ.

Embeddings are computed elsewhere and stored as NumPy's ``.npy``, a row for each item in the order
of the names. A folder holds ``ids.txt`` and ``embeddings.npy``, and may hold ``attributes.csv``
(``id`` and a column for each attribute; numbers are ordered) and ``captions.txt``, a line an item.
"""

import json
from collections.abc import Sequence
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from tokenize import TokenError

import numpy as np
from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.rows import unstorable
from annotation.readers.tables import each_row
from presentation.files import plain_file, reason_of
from simulation.catalogue import Attribute, Attributes, Catalogue, below_one
from simulation.exceptions import CatalogueUnfit
from stats.arguments import Floats, Integers

# No such file, not UTF-8, not JSON, or nested too deeply.
UNREADABLE = (OSError, ValueError, RecursionError)
# Number of classes of an ordered attribute.
MOST_LEVELS = 10


def read_folder(folder: Path, *, source: str = "") -> Catalogue:
    ids = read_names(folder / "ids.txt")
    attributes, captions = folder / "attributes.csv", folder / "captions.txt"
    catalogue = Catalogue(
        ids=tuple(ids),
        embeddings=read_embeddings(folder / "embeddings.npy", len(ids)),
        source=source or folder.name,
        attributes=read_attributes(attributes, ids) if attributes.exists() else None,
        captions=tuple(_lines(captions)) if captions.exists() else (),
    )
    require_apart(catalogue)
    return catalogue


def read_shoes(names: Path, embeddings: Path) -> Catalogue:
    """Shoes as in dialog-based image retrieval: picture names, a line each (eval_im_names.txt)."""
    return _of_files(read_names(names), embeddings, f"Shoes, {names.name}")


def read_fashion_iq(split: Path, embeddings: Path) -> Catalogue:
    """A category of FashionIQ: product numbers as a JSON list (split.dress.val.json)."""
    try:
        ids = json.loads(plain_file(split).read_text(encoding="utf-8"))
    except UNREADABLE as error:
        raise CatalogueUnfit(f"{split.name} cannot be read: {reason_of(error)}.") from None
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise CatalogueUnfit(f"{split.name} is not a JSON list of product numbers.")
    if "" in ids:
        raise CatalogueUnfit(f"Entry {ids.index('') + 1} of {split.name} is empty.")
    _require_storable(split, ids, "Entry")
    return _of_files(ids, embeddings, f"FashionIQ, {split.name}")


def _of_files(ids: Sequence[str], embeddings: Path, source: str) -> Catalogue:
    catalogue = Catalogue(tuple(ids), read_embeddings(embeddings, len(ids)), source)
    require_apart(catalogue)
    return catalogue


def require_apart(catalogue: Catalogue) -> None:
    """Refuse items that all have the same place, or that one outlier draws together: recommenders
    would rank them by their order in the file."""
    n_places = _distinct(catalogue.positions)
    if n_places == 1:
        raise CatalogueUnfit(
            f"All {len(catalogue):,} embeddings are alike: recommenders could not tell the items "
            "apart. Send the embeddings of these items.",
            code="all_alike",
        )
    # The same item under two ids is the catalogue's own affair.
    if 2 * n_places < _distinct(catalogue.embeddings):
        farthest = catalogue.ids[int(np.abs(catalogue.embeddings).max(axis=1).argmax())]
        raise CatalogueUnfit(
            f"The embedding of {farthest} is so much longer than the others that these lie in "
            f"{n_places:,} places: recommenders could not tell the {len(catalogue):,} items apart. "
            "Correct it, or scale each embedding to length 1."
        )


def _distinct(rows: Floats) -> int:
    return len({row.tobytes() for row in rows + 0.0})  # -0.0 and 0.0 are one number


def read_names(path: Path) -> list[str]:
    names = [line.strip() for line in _lines(path)]
    if "" in names:
        raise CatalogueUnfit(
            f"Line {names.index('') + 1} of {path.name} is empty.", code="empty_id"
        )
    return names


def _lines(path: Path) -> list[str]:
    try:
        lines = plain_file(path).read_text(encoding="utf-8-sig").splitlines()
    except UNREADABLE as error:
        raise CatalogueUnfit(f"{path.name} cannot be read: {reason_of(error)}.") from None
    _require_storable(path, lines, "Line")
    return lines


def _require_storable(path: Path, texts: Sequence[str], unit: str) -> None:
    for number, text in enumerate(texts, 1):
        if problem := unstorable(text):
            raise CatalogueUnfit(f"{unit} {number} of {path.name}: {problem}", code="unstorable")


def read_embeddings(path: Path, n_items: int) -> Floats:
    """A row per item. Pickled objects, which can be programs, are not read."""
    try:
        # Mapped, so that a header which promises more than the file has takes no memory.
        values = np.load(plain_file(path), mmap_mode="r", allow_pickle=False)
    # the header is Python's syntax
    except (*UNREADABLE, EOFError, TypeError, OverflowError, MemoryError, TokenError) as error:
        raise CatalogueUnfit(f"{path.name} cannot be read as .npy: {reason_of(error)}.") from None
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiu":
        raise CatalogueUnfit(f"{path.name} is not a matrix of numbers.", code="not_a_matrix")
    if not values.shape[1]:
        raise CatalogueUnfit(
            f"{path.name} has no column: store one number or more for each name.", code="no_columns"
        )
    if len(values) != n_items:
        raise CatalogueUnfit(
            f"{path.name} has {len(values):,} rows for {n_items:,} names. Store one row a name, "
            "in their order.",
            code="n_rows",
        )
    return np.array(values, dtype=np.float64)


def read_attributes(path: Path, ids: list[str]) -> Attributes:
    rows = _rows_by_id(path)
    names = [name for name in next(iter(rows.values())) if name != "id"] if rows else []
    _require_storable(path, names, "Column")
    if missing := [one for one in ids if one not in rows]:
        raise CatalogueUnfit(f"{path.name} has no line for {missing[0]}.", code="no_line")
    if not names:
        raise CatalogueUnfit(f"{path.name} has no column beside id.")
    for one in ids:
        for name in names:
            value = rows[one][name]
            if problem := unstorable(value) if value else "there is no value.":
                raise CatalogueUnfit(
                    f"{path.name}, {one}, {name}: {problem}", code="unstorable_value"
                )
    columns = [_attribute(name, [rows[one][name] for one in ids]) for name in names]
    kinds = tuple(kind for kind, _ in columns)
    if all(len(kind.values) == 1 for kind in kinds):
        raise CatalogueUnfit(
            f"All items have the same values in {path.name}: no critique could name a difference. "
            "Add a column in which they differ, or send no such file.",
            code="no_difference",
        )
    return Attributes(kinds, np.column_stack([codes for _, codes in columns]))


def _rows_by_id(path: Path) -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    try:
        for row in each_row(path, ["id"]):
            if (one := row.text("id")) in rows:
                raise CatalogueUnfit(
                    f"{path.name}, line {row.line}: {one} has a line already.", code="line_twice"
                )
            rows[one] = {name: row.text(name) for name in row.fields}
    except ImportRefused as refused:
        raise CatalogueUnfit(str(refused), code=refused.code) from None
    return rows


def _attribute(name: str, texts: list[str]) -> tuple[Attribute, Integers]:
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        values = sorted(set(texts))
        number = {value: at for at, value in enumerate(values)}
        codes = np.array([number[text] for text in texts], dtype=np.intp)
        return Attribute(name, tuple(values)), codes
    return ordered_attribute(name, numbers, f"has more {name}", f"has less {name}")


def ordered_attribute(
    name: str, numbers: Floats, more: str, less: str
) -> tuple[Attribute, Integers]:
    """Classes of a measured quantity, of about the same size."""
    if not np.isfinite(numbers).all():
        raise CatalogueUnfit(f"The attribute {name} has a value that is no number.")
    numbers = below_one(numbers)
    bounds = np.unique(np.quantile(numbers, np.linspace(0, 1, MOST_LEVELS + 1)[1:-1]))
    codes = np.searchsorted(bounds, numbers, side="left")
    _, codes = np.unique(codes, return_inverse=True)
    values = tuple(f"level {level + 1}" for level in range(int(codes.max()) + 1))
    return Attribute(name, values, is_ordered=True, more=more, less=less), codes.astype(np.intp)


IDS, EMBEDDINGS, SPRITE = "ids.txt", "embeddings.npy", "fashion-mnist-sprite.png"
CAPTIONS = ("relative_captions*.json", "cap.*.json")
PATTERNS = (
    *(IDS, "*.npy", "attributes.csv", "captions.txt"),
    *("*im_names.txt", "split.*.json", "*sprite*.png"),
    *CAPTIONS,
)


def is_known(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in PATTERNS)


def read_sent(folder: Path, *, source: str = "") -> Catalogue:
    if (folder / IDS).exists():
        return read_folder(folder, source=source)
    if sprite := _only(folder, "*sprite*.png"):
        return read_sprite(sprite)
    vectors = _only(folder, "*.npy")
    if vectors and (names := _only(folder, "*im_names.txt")):
        return read_shoes(names, vectors)
    if vectors and (split := _only(folder, "split.*.json")):
        return read_fashion_iq(split, vectors)
    raise CatalogueUnfit(
        _(
            "It holds no catalogue. Send {ids} and {embeddings}; or a .npy with Shoes' "
            "eval_im_names.txt, or with FashionIQ's split.….json; or Fashion-MNIST's sprite."
        ).format(ids=IDS, embeddings=EMBEDDINGS)
    )


def captions_of(folder: Path) -> Path | None:
    for pattern in CAPTIONS:
        if path := _only(folder, pattern):
            return path
    return None


def _only(folder: Path, pattern: str) -> Path | None:
    paths = sorted(folder.glob(pattern))
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths[:2])
        raise CatalogueUnfit(_("It holds {names}: send one of them.").format(names=names))
    return paths[0] if paths else None


CLASSES = (
    "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
    "ankle boot",
)  # fmt: skip
TILE, A_SIDE, ROWS_A_CLASS = 28, 30, 3
N_COMPONENTS = 32


def read_sprite(path: Path) -> Catalogue:
    """Embeddings are the first 32 principal components of the pixels; attributes are measured."""
    tiles = _tiles(path)
    pixels = tiles.reshape(len(tiles), -1)
    centred = pixels - pixels.mean(axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    classes = np.repeat(np.arange(len(CLASSES)), A_SIDE * ROWS_A_CLASS)
    names = [
        f"{CLASSES[code].lower().replace(' ', '-')}-{at:03d}" for at, code in enumerate(classes)
    ]
    return Catalogue(
        ids=tuple(names),
        embeddings=centred @ components[:N_COMPONENTS].T,
        source="Fashion-MNIST's sprite, 32 principal components of its pixels",
        attributes=_attributes(tiles, classes),
        picture=lambda item: _png(tiles[item]),
    )


def _tiles(path: Path) -> Floats:
    from PIL import Image, UnidentifiedImageError

    side = TILE * A_SIDE
    try:
        with Image.open(plain_file(path)) as picture:
            if picture.size != (side, side):
                raise CatalogueUnfit(f"{path.name} is not a picture of {side} by {side} pixels.")
            grey = np.asarray(picture.convert("L"), dtype=np.float64) / 255
    except UnidentifiedImageError:  # names the server's folder
        raise CatalogueUnfit(f"{path.name} is not a picture.") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise CatalogueUnfit(f"{path.name} cannot be read: {reason_of(error)}.") from None
    return grey.reshape(A_SIDE, TILE, A_SIDE, TILE).swapaxes(1, 2).reshape(-1, TILE, TILE)


def _attributes(tiles: Floats, classes: Integers) -> Attributes:
    ink = tiles > 0.1
    area = ink.sum(axis=(1, 2))
    light = (tiles * ink).sum(axis=(1, 2)) / np.maximum(area, 1)
    height = ink.any(axis=2).sum(axis=1).astype(float)
    width = ink.any(axis=1).sum(axis=1).astype(float)
    pattern = np.abs(np.diff(tiles, axis=2)).mean(axis=(1, 2))
    measured = (
        ("lightness", light, "is lighter", "is darker"),
        ("height", height, "is higher", "is lower"),
        ("width", width, "is wider", "is narrower"),
        ("pattern", pattern, "has more of a pattern", "has less of a pattern"),
        ("fullness", area / (height * width), "is fuller", "is more open"),
    )
    columns = [ordered_attribute(*each) for each in measured]
    kinds = (Attribute("category", CLASSES), *(kind for kind, _ in columns))
    return Attributes(kinds, np.column_stack([classes, *(codes for _, codes in columns)]))


def _png(tile: Floats) -> bytes:
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray((tile * 255).astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()
