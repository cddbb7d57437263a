"""The files of a catalogue that was sent: their layout, and whose captions come along."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from django.utils.translation import gettext as _

from simulation.catalogue import Catalogue
from simulation.catalogue_files import read_fashion_iq, read_folder, read_shoes
from simulation.exceptions import CatalogueUnfit
from simulation.sprites import read_sprite

IDS, EMBEDDINGS, SPRITE = "ids.txt", "embeddings.npy", "fashion-mnist-sprite.png"
CAPTIONS = ("relative_captions*.json", "cap.*.json")
PATTERNS = (
    *(IDS, "*.npy", "attributes.csv", "captions.txt"),
    *("*im_names.txt", "split.*.json", "*sprite*.png"),
    *CAPTIONS,
)


def is_known(name: str) -> bool:
    """Whether a file of that name says something of a catalogue."""
    return any(fnmatch(name, pattern) for pattern in PATTERNS)


def read_sent(folder: Path, *, source: str = "") -> Catalogue:
    """The catalogue of the files of a folder, in whichever layout; its captions are read apart."""
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
    """The file of relative captions, where there is one."""
    for pattern in CAPTIONS:
        if path := _only(folder, pattern):
            return path
    return None


def _only(folder: Path, pattern: str) -> Path | None:
    """The file of that name; None where there is none, and refused where there are two."""
    paths = sorted(folder.glob(pattern))
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths[:2])
        raise CatalogueUnfit(_("It holds {names}: send one of them.").format(names=names))
    return paths[0] if paths else None
