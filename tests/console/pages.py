import csv
import io
import re
from collections import Counter
from html import unescape

import lxml.html

from results.shown import ShownResult
from tests.codes import codes_of, field_codes


def words_of(content):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", content))).strip()


def answer_codes(view):
    first = view.answer if isinstance(view, ShownResult) else view.first_sentence
    return codes_of([first, *view.details])


def refused_fields(answer, form="form"):
    assert answer.status_code == 422
    return field_codes(answer.context[form])


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def rows_alike(content):
    alike = []
    for table in lxml.html.fromstring(content).xpath("//table"):
        headers = Counter(
            tuple(each.text_content() for each in row.xpath("./th[@scope='row']"))
            for row in table.xpath("./tbody/tr")
        )
        alike += [row for row, n in headers.items() if n > 1]
    return alike
