from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from annotation.readers.drafts import PictureDraft
from annotation.readers.pictures import MOST_PIXELS, n_pixels
from metrics.exceptions import ModelUnfit
from metrics.scorers.checkpoints import Checkpoint
from metrics.scorers.embedding import ENCODING_BATCH, LARGE_BATCH, load_encoder
from metrics.scorers.errors import ScorerError
from presentation.files import reason_of
from presentation.progress import Progress, silently
from retrieval.exceptions import PoolUnfit
from retrieval.pools.catalogue import Catalogue
from retrieval.pools.vectors import Vectors, temporary_array

if TYPE_CHECKING:
    from PIL.Image import Image

Part = Literal["texts", "pictures"]
# The number of documents whose pictures are in memory at once.
AT_ONCE = 512
BYTES_A_NUMBER = 4


def encode_catalogue(
    catalogue: Catalogue,
    model: str | Path,
    *,
    part: Part,
    device: str | None = None,
    download: bool = False,
    most_bytes: int | None = None,
    progress: Progress = silently,
) -> Vectors:
    """A vector for each document that has a text, or a picture that can be shown.

    The model is found as the metrics find theirs: the packaged one, a folder, or a name on the
    hub, which is fetched only with `download`. More than `most_bytes` of vectors are refused once
    the first of them say how long they are.
    """
    names = _encodable(catalogue, part)
    checkpoint = Checkpoint(model, download)
    try:
        encoder: Any = load_encoder(checkpoint, device)
        signed = "|".join(f"{field}:{value}" for field, value in checkpoint.signed().items())
    except ScorerError as error:
        raise ModelUnfit(str(error)) from error
    if not encoder.supports("image" if part == "pictures" else "text"):
        raise PoolUnfit(
            f"The model {checkpoint.label} reads no {part}. Choose another part of the catalogue, "
            "or a model that reads them; whoever runs the site names those in EMBEDDING_MODELS."
        )
    array: Any = None
    starts = range(0, len(names), AT_ONCE)
    for start in progress(starts, len(starts)):
        rows = encoder.encode(
            list(_inputs(catalogue, names[start : start + AT_ONCE], part)),
            batch_size=ENCODING_BATCH.get(encoder.device.type, LARGE_BATCH),
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        if array is None:
            _require_few(len(names) * rows.shape[1] * BYTES_A_NUMBER, most_bytes)
            array = temporary_array(len(names), rows.shape[1])
        array[start : start + len(rows)] = rows
    version = f"sentence-transformers-{metadata.version('sentence-transformers')}"
    return Vectors(names, array, f"encoder|of:{part}|{signed}|version:{version}")


def _require_few(n_bytes: int, most: int | None) -> None:
    if most is not None and n_bytes > most:
        raise PoolUnfit(
            f"The vectors would have {n_bytes / 1024**2:,.0f} MiB, and {most / 1024**2:,.0f} MiB "
            "are the most: split the catalogue."
        )


def _encodable(catalogue: Catalogue, part: Part) -> list[str]:
    names = [
        document.docno
        for document in catalogue.documents.values()
        if (document.image and not document.problem if part == "pictures" else document.title)
    ]
    if not names:
        raise PoolUnfit(f"The catalogue has no {part} to encode.")
    return names


def _inputs(catalogue: Catalogue, names: Sequence[str], part: Part) -> Iterator[str | Image]:
    for name in names:
        if part == "texts":
            yield catalogue.title(name)
        elif (picture := catalogue.picture(name)) is not None:
            yield opened_picture(picture, name)


def opened_picture(picture: PictureDraft, name: str) -> Image:
    from PIL import Image, UnidentifiedImageError

    content = picture.content
    try:
        if picture.media_type == "image/svg+xml":
            import vl_convert

            require_harmless(content)
            content = vl_convert.svg_to_png(content.decode("utf-8-sig"))
        with Image.open(BytesIO(content)) as image:
            layers = image.convert("RGBA")
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise PoolUnfit(f"The picture of {name} cannot be read: {reason_of(error)}.") from None
    return Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers).convert("RGB")


# In pixels. The renderer takes four bytes per pixel, and ends the process if it has no memory.
MOST_SIDE = 8000
MOST_DRAWN = 16_000_000
# Repeated elements can repeat others: 20 uses can already draw a thousand elements.
MOST_ELEMENTS, MOST_USES = 50_000, 20
LENGTH = re.compile(r"\s*(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*(px|pt|pc|mm|cm|in|)\s*", re.I)
PIXELS = {"": 1, "px": 1, "pt": 96 / 72, "pc": 16, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96}
EMBEDDED = re.compile(r"\s*data:image/(?:png|jpeg|jpg|gif|webp);base64,(.*)", re.I | re.S)
# A reference to anything outside the drawing; an escape (\) could spell one.
REFERENCE = re.compile(r"url\(\s*['\"]?\s*(?!#)|@import|\\", re.I)


def require_harmless(content: bytes) -> None:
    """ValueError where a drawing refers to what is not in it, or is too large to be drawn."""
    try:
        root = fromstring(content, forbid_dtd=True)
    except ParseError as error:
        raise ValueError(f"it is not XML: {error}") from None
    elements = list(root.iter())
    n_uses = sum(_plain(one.tag) == "use" for one in elements)
    if len(elements) > MOST_ELEMENTS or n_uses > MOST_USES:
        raise ValueError(
            f"it has {len(elements):,} elements and repeats {n_uses:,}, where {MOST_ELEMENTS:,} "
            f"and {MOST_USES} are the most"
        )
    for element in elements:
        _require_alone(element)
    width, height = _size(root)
    if max(width, height) > MOST_SIDE or width * height > MOST_DRAWN:
        raise ValueError(f"it is drawn {width:,.0f} pixels wide and {height:,.0f} high")


def _require_alone(element: Element) -> None:
    for name, value in element.attrib.items():
        if ((_plain(name) in ("href", "src")) and not _is_inside(value)) or REFERENCE.search(value):
            raise ValueError(f"it refers to {value[:40]}, which is not in it")
    if _plain(element.tag) == "style" and REFERENCE.search("".join(element.itertext())):
        raise ValueError("its style refers to what is not in it")


def _is_inside(value: str) -> bool:
    if value.strip().startswith("#") or not value.strip():
        return True
    embedded = EMBEDDED.fullmatch(value)
    return embedded is not None and 0 < n_pixels(b64decode(embedded[1])) <= MOST_PIXELS


def _plain(name: object) -> str:
    return name.rpartition("}")[2].lower() if isinstance(name, str) else ""


def _size(root: Element) -> tuple[float, float]:
    shown = [float(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip()) if part]
    of_view = shown[2:] if len(shown) == 4 else [100.0, 100.0]
    width, height = (
        default if (text := root.get(name)) is None or text.strip().endswith("%") else _pixels(text)
        for name, default in zip(("width", "height"), of_view, strict=True)
    )
    return width, height


def _pixels(text: str) -> float:
    length = LENGTH.fullmatch(text)
    if length is None:
        raise ValueError(f"its size is {text[:40]}")
    return float(length[1] + (length[2] or "")) * PIXELS[length[3].lower()]
