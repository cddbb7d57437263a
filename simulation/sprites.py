"""Fashion-MNIST's sprite as a catalogue: 900 photographs of products in ten classes.

H. Xiao, K. Rasul and R. Vollgraf (2017). Fashion-MNIST. The picture is doc/img/
fashion-mnist-sprite.png of its repository (MIT): 30 x 30 tiles of 28 pixels, three rows a class.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

from presentation.files import plain_file, reason_of
from simulation.catalogue import Attribute, Attributes, Catalogue
from simulation.catalogue_files import ordered_attribute
from simulation.exceptions import CatalogueUnfit
from stats.arguments import Floats, Integers

CLASSES = (
    "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
    "ankle boot",
)  # fmt: skip
TILE, A_SIDE, ROWS_A_CLASS = 28, 30, 3
N_COMPONENTS = 32


def read_sprite(path: Path) -> Catalogue:
    """Embeddings are the pixels' first 32 principal components, attributes what can be measured."""
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
    tiles = grey.reshape(A_SIDE, TILE, A_SIDE, TILE).swapaxes(1, 2)
    return tiles.reshape(-1, TILE, TILE)


def _attributes(tiles: Floats, classes: Integers) -> Attributes:
    """The class, and how light, high, wide, patterned and filled the product is."""
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
