"""What a file is by its first bytes, where it is not the text that somebody meant to send."""

from __future__ import annotations

from django.utils.translation import gettext as _

from error_codes import CodedText

LOOKED_AT = 4096
MOST_UNREADABLE = 0.2
"""Of the characters: a line or two in another encoding are faults of a text, and named by line."""
ZIP, GZIP, OLD_OFFICE = b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
PICTURES = {
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
WHITE = "\t\n\r\f\v"


def problem_of_text(start: bytes) -> str:
    """Why bytes are not the start of a text; empty where they are one."""
    if (noun := _noun(start)) is not None:
        text = _("it is {noun}, and not text.").format(noun=noun)
        if start.startswith(b"PAR1") or noun == _("an Excel workbook"):
            text += " " + _("Save it as CSV with a header.")
        return CodedText(text, code="not_text")
    if _is_binary(start):
        text = _("it is not text: too much of it cannot be read as characters.")
        return CodedText(text, code="not_text")
    return ""


def _noun(start: bytes) -> str | None:
    """The name of a well-known format."""
    for first, name in PICTURES.items():
        if start.startswith(first) and _is_binary(start):
            return _("a picture ({name})").format(name=name)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return _("a picture ({name})").format(name="WebP")
    if start.startswith(ZIP):
        return _zip_noun(start)
    if start.startswith(OLD_OFFICE):
        return _("an Office document")
    if start.startswith(b"%PDF"):
        return _("a PDF document")
    if start.startswith(b"PAR1"):
        return _("Parquet")
    if start.startswith(b"\x93NUMPY"):
        return _("an array of NumPy")
    return None


def _zip_noun(start: bytes) -> str:
    """Office documents are zips of XML files."""
    if b"xl/" in start:
        return _("an Excel workbook")
    if b"[Content_Types].xml" in start or b"word/" in start:
        return _("an Office document")
    return _("a zip")


def problem_of_table(start: bytes) -> str:
    """Why bytes are not the start of a table, or of a zip with one; empty where they may be."""
    if start.startswith(ZIP) or start.startswith(OLD_OFFICE):
        return ""  # what is in it, its reader says
    noun = _noun(start)
    if noun is None and _is_binary(start) and not start.startswith((GZIP, *UTF16)):
        return _("it is not text: too much of it cannot be read as characters.")
    return _("it is {noun}, and not a table.").format(noun=noun) if noun else ""


def problem_of_vectors(start: bytes) -> str:
    """Why bytes are not the start of vectors; empty where they may be."""
    noun = _noun(start)
    if start.startswith(b"PAR1") or (start.startswith(ZIP) and noun == _("a zip")):
        return ""
    text = _(
        "it is {noun}. Vectors are Parquet, or a zip with a .npy file and an .ids file of names."
    )
    return text.format(noun=noun or (_("another kind of file") if _is_binary(start) else _("text")))


def _is_binary(start: bytes) -> bool:
    text = start[:LOOKED_AT].decode(errors="replace")
    n = sum(
        character == "\ufffd" or (not character.isprintable() and ord(character) < 160)
        for character in text
        if character not in WHITE
    )
    return n > MOST_UNREADABLE * len(text)
