"""Text files as UTF-8: the encoding that was found, and measures that make fast reading safe.

What gzip compressed is a thousandth of itself: one line of it may be all that a machine can hold,
so a record that would fill the memory is refused.
"""

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.archives import READ_AT_ONCE
from presentation.files import reason_of

MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Offered if the detected encoding shows the wrong letters.
ENCODINGS = (
    *("utf-8", "utf-16", "windows-1252", "windows-1250", "windows-1251", "iso-8859-15"),
    *("mac-roman", "shift_jis", "gb18030", "big5", "euc-kr"),
)
# Bytes of lines with letters beyond ASCII, from which an encoding is guessed.
GUESSED_FROM = 64 * 1024
LINE_FEED, RETURN, QUOTE, NUL = b'\n\r"\0'


def find_encoding(path: Path) -> str:
    """The encoding of a text file: by its mark, as UTF-8, or else by its letters."""
    with path.open("rb") as content:
        beginning = content.read(4096)
    for mark, name in MARKS.items():
        if beginning.startswith(mark):
            return name
    # Latin letters in UTF-16 leave every other byte empty.
    for name, empty in (("utf-16-le", beginning[1::2]), ("utf-16-be", beginning[::2])):
        if len(beginning) > 3 and empty.count(0) > 0.4 * len(empty):
            return name
    return "utf-8" if _decodes(path, "utf-8") or _is_mostly_utf8(path) else _legacy_encoding(path)


def _legacy_encoding(path: Path) -> str:
    from charset_normalizer import from_bytes

    sample = bytearray()
    with path.open("rb") as content:
        while len(sample) < GUESSED_FROM and (line := content.readline(GUESSED_FROM)):
            if not line.isascii():
                sample += line[:GUESSED_FROM]
    python_names = {codecs.lookup(name).name.replace("-", "_"): name for name in ENCODINGS[2:]}
    matches = from_bytes(bytes(sample), cp_isolation=list(python_names))
    best = matches.best()
    if best is None:
        return "windows-1252"
    as_good = [each for each in matches if each.chaos <= best.chaos]
    if any("cp1252" in each.could_be_from_charset for each in as_good):
        return "windows-1252"
    return python_names.get(best.encoding, "windows-1252")


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as content:
        while True:
            part = content.read(READ_AT_ONCE)
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError:
                return False
            if not part:
                return True


def _is_mostly_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    balance = 0
    with path.open("rb") as content:
        while True:
            part = content.read(READ_AT_ONCE)
            text = decoder.decode(part, final=not part)
            balance += (len(text) - len(text.encode("ascii", "ignore"))) - 2 * text.count("\ufffd")
            if not part:
                return balance > 0


def text_encoding(encoding: str) -> str:
    """The codec that also takes the mark that some programs begin UTF-8 with."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def undecodable_line(content: BinaryIO, encoding: str = "utf-8") -> int:
    """The line of the first byte that does not fit an encoding in which ASCII is ASCII."""
    decoder = codecs.getincrementaldecoder(encoding)()
    n_lines, ends_in_return = 0, False
    while True:
        part = content.read(READ_AT_ONCE)
        try:
            decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            # The decoder puts the rest of the part before at the beginning of this one.
            part = error.object[: error.start]
            return n_lines + _count_ends(part, ends_in_return) + 1
        if not part:
            return n_lines + 1
        n_lines += _count_ends(part, ends_in_return)
        ends_in_return = part.endswith(b"\r")


def _count_ends(part: bytes, after_return: bool) -> int:
    n = part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
    return n - (after_return and part.startswith(b"\n"))


def refuse_encoding(
    path: Path, name: Path, encoding: str, line: int | None = None
) -> ImportRefused:
    """The error for a file that is not text of this encoding, with its first such line.

    `line` is the reader's line, which is used for encodings of two bytes per letter.
    """
    if not encoding.startswith("utf-16"):
        with path.open("rb") as content:
            line = undecodable_line(content, encoding)
    return ImportRefused(
        name,
        _("this is not {encoding} text; read it in another encoding, or save it as UTF-8.").format(
            encoding=encoding
        ),
        line=line,
        code="wrong_encoding",
    )


def copy_as_utf8(path: Path, name: Path, encoding: str, folder: Path) -> Path:
    copy = folder / f"utf8-{path.name}"[:100]
    n_lines = 0
    try:
        with (
            path.open(encoding=encoding, newline="") as source,
            copy.open("w", encoding="utf-8", newline="") as target,
        ):
            while part := source.read(READ_AT_ONCE):
                target.write(part)
                n_lines += part.count("\n")
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError):
            raise refuse_encoding(path, name, encoding, n_lines + 1) from None
        raise ImportRefused(
            name,
            _("it cannot be read as {encoding}: {error}.").format(
                encoding=encoding, error=reason_of(error)
            ),
            code="wrong_encoding",
        ) from None
    return copy


def scan_text(path: Path, delimiter: str) -> tuple[bool, int, np.ndarray]:
    """Measures of a text in UTF-8 as CSV with quotation marks: whether it is regular, the length
    of its longest record in bytes, and the lines that records begin on, without blank records.

    It is regular if every quotation mark opens, closes or is doubled in a quoted cell, and the
    text has neither NUL nor a return without a line feed. Then each CSV parser reads the same
    cells.
    """
    is_regular, longest, starts = True, 0, []
    n_quotes = n_feeds = position = 0
    # Of the last line feed that ends a record: its position, and its number among all line feeds.
    last_end, last_number = -1, -1
    for block in _overlapping_blocks(path):
        inner = block[1:-1]
        quotes = np.flatnonzero(inner == QUOTE)
        if is_regular:
            is_regular = _is_regular(block, quotes, n_quotes, ord(delimiter))
        feeds = np.flatnonzero(inner == LINE_FEED)
        is_end = (np.searchsorted(quotes, feeds) + n_quotes) % 2 == 0
        ends = np.concatenate(([last_end], feeds[is_end] + position))
        numbers = np.concatenate(([last_number], np.flatnonzero(is_end) + n_feeds))
        if len(ends) > 1:
            sizes = np.diff(ends) - 1 - (block[feeds[is_end]] == RETURN)
            longest = max(longest, int(sizes.max()))
            starts.append((numbers[:-1] + 2)[sizes > 0].astype(np.int32))
        last_end, last_number = int(ends[-1]), int(numbers[-1])
        n_quotes += len(quotes)
        n_feeds += len(feeds)
        position += len(inner)
    if (size := position - last_end - 1) > 0:
        longest = max(longest, size)
        starts.append(np.array([last_number + 2], np.int32))
    lines = np.concatenate(starts) if starts else np.empty(0, np.int32)
    return is_regular and n_quotes % 2 == 0, longest, lines


def _is_regular(block: np.ndarray, quotes: np.ndarray, n_before: int, delimiter: int) -> bool:
    """Whether a block's quotation marks, of which some come before, are all next to an edge of a
    cell or doubled; `block` has a byte of context on both sides."""
    inner, following = block[1:-1], block[2:]
    if (inner == NUL).any() or ((inner == RETURN) & (following != LINE_FEED)).any():
        return False
    is_opening = (np.arange(len(quotes)) + n_before) % 2 == 0
    edge = np.where(is_opening, block[quotes], following[quotes])
    fits = (edge == delimiter) | (edge == LINE_FEED) | (edge == QUOTE)
    return bool((fits | (~is_opening & (edge == RETURN))).all())


def _overlapping_blocks(path: Path) -> Iterator[np.ndarray]:
    """A file's bytes in blocks, each with the byte before it and the byte after it; without the
    mark of UTF-8, and as if a line feed stood before the first byte and after the last."""
    before = b"\n"
    with path.open("rb") as content:
        part = content.read(READ_AT_ONCE).removeprefix(codecs.BOM_UTF8)
        while part:
            following = content.read(READ_AT_ONCE)
            yield np.frombuffer(before + part + (following[:1] or b"\n"), np.uint8)
            before, part = part[-1:], following


# In characters. A dialogue of 100,000 words has less than one million; with pictures, more.
LONGEST_RECORD = 16 * 1024**2


class BoundedLines:
    def __init__(self, path: Path, lines: TextIO) -> None:
        self._path, self._lines = path, lines
        self._left, self._line = LONGEST_RECORD, 1
        self.is_refused = False

    def begin_record(self, *, line: int) -> None:
        self._left, self._line = LONGEST_RECORD, line

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = self._lines.readline(self._left + 1)
        if not text:
            raise StopIteration
        if len(text) > self._left:
            self.is_refused = True
            raise ImportRefused(
                self._path,
                _("it has more than {n} million characters up to the next row.").format(
                    n=LONGEST_RECORD // 1_000_000
                ),
                line=self._line,
                code="too_long",
            )
        self._left -= len(text)
        return text
