"""Words of a page that the pseudo-locale does not put into brackets, and that are no data.

Such words were not marked for translation.
"""

import re
from html import unescape
from html.parser import HTMLParser

from django.apps import apps
from django.db.models import CharField, JSONField, TextField

from config.catalogues import READ_ALOUD, SILENT, VOID
from results.models import Result
from tests.emptied_tables import filled_tables

# Names, formats and units, the same in all languages.
NAMES = (
    "Assay|UTC|USD|CSV|SVG|PNG|PDF|JSON|JSONL|Parquet|LaTeX|qrels|HITs?|TREC|"
    "Pearson|Spearman|Kendall|alpha|MASI"
)
FORBIDDEN = re.compile(rf"(?!\b(?:{NAMES})\b)\b[^\W\d_][\w'’-]+")
ADDRESS_OR_SIGNATURE = re.compile(r"https?://\S+|\S+\|\S+|\w+\.(?:csv|jsonl?|parquet|txt|zip)\b")


def unmarked_words(page, data):
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return [text for text in reader.outside() if _has_words(text, data)]


def unmarked_in_text(text, data):
    """Whether a text that stands alone has words outside the brackets that are no data."""
    # A message may hold others, so that the innermost brackets go first.
    while (outside := re.sub("⟦[^⟦⟧]*⟧", " ", text)) != text:
        text = outside
    return _has_words(text, data)


def chart_titles(specification):
    if isinstance(specification, list):
        return [title for part in specification for title in chart_titles(part)]
    if not isinstance(specification, dict):
        return []
    titles = []
    for name, part in specification.items():
        if name == "title" and isinstance(part, str | list):
            titles.append(part if isinstance(part, str) else " ".join(map(str, part)))
        elif name != "datasets":
            titles += chart_titles(part)
    return [title for title in titles if title]


def _has_words(text, data):
    text = ADDRESS_OR_SIGNATURE.sub(" ", text)
    if not FORBIDDEN.search(text):
        return False
    # What was cut short on the page.
    if text.endswith("…") and any(each.startswith(text[:-1]) for each in data):
        return False
    for each in data:
        if each.casefold() in text.casefold():
            text = re.sub(rf"(?i)(?<!\w){re.escape(each)}(?!\w)", " ", text)
    return bool(FORBIDDEN.search(text))


def stored_texts():
    """Every text in the database that is no choice of the code's, the longest first."""
    filled, texts = filled_tables(), set[str]()
    for model in apps.get_models():
        names = [
            field.name
            for field in model._meta.concrete_fields
            if isinstance(field, (CharField, TextField, JSONField)) and not field.choices
        ]
        if names and model._meta.db_table in filled:
            for row in model._default_manager.values_list(*names):
                texts |= set(_strings(list(row)))
    for result in Result.objects.all():
        texts |= set(_strings(result.record))
    lines = {" ".join(line.split()) for text in texts for line in _lines(text)}
    return sorted((text for text in lines if text), key=len, reverse=True)


def _lines(text):
    """A text as pages show it: whole, by lines, a name in words, what stands between tags."""
    between = re.split(r"<!\[CDATA\[|\]\]>|<[^>]*>", unescape(text)) if "<" in text else []
    return [text, *text.splitlines(), text.replace("_", " "), *between]


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


class _Reader(HTMLParser):
    """Collects texts and what is read aloud; silent are scripts, code and `translate="no"`."""

    def __init__(self):
        super().__init__()
        self.texts = []
        self.attributes = []
        self.silent = []

    def handle_starttag(self, tag, attrs):
        is_silent = tag in SILENT or ("translate", "no") in attrs
        if (self.silent or is_silent) and tag not in VOID:
            self.silent.append(tag)
        self.attributes += [value or "" for name, value in attrs if name in READ_ALOUD]
        self.texts.append("\n")

    def handle_endtag(self, tag):
        if self.silent and tag not in VOID:
            self.silent.pop()
        self.texts.append("\n")

    def handle_data(self, data):
        if not self.silent:
            self.texts.append(" ".join(data.split()) + " ")

    def outside(self):
        """What is in no brackets; a message may hold tags, and so go on after one."""
        for whole in ["".join(self.texts), *self.attributes]:
            depth, text = 0, ""
            for sign in whole + "\n":
                depth += (sign == "⟦") - (sign == "⟧")
                if sign in "⟦⟧\n":
                    if text.strip():
                        yield text.strip()
                    text = ""
                elif depth == 0:
                    text += sign
