"""Runs and qrels as JSON: {topic: {document: value}}, or records with fields, one a line or in an
array.

The first is what pytrec_eval's evaluator takes, and what ranx and BEIR save; the second is what
ir_datasets exports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from annotation.exceptions import ImportRefused
from annotation.readers import tables
from annotation.readers.report import ReadingReport
from error_codes import CodedText
from retrieval.exceptions import TrecFileFaults
from retrieval.trec_layouts import FileKind, column_name

MOST_BYTES = 128 * 1024**2
"""Of JSON that is read as a whole: its objects take ten times as much memory."""
Named = dict[str, str]
NO_DOCUMENTS = CodedText("the topic has no documents", "no_documents")


class Pairs(list[tuple[str, Any]]):
    """The names and values of an object; of a dictionary, those that are there twice are lost."""


def each_record(
    path: Path, file: IO[bytes], kind: FileKind, report: ReadingReport
) -> Iterator[tuple[str, Named]]:
    """Where each record is, and its topic, docno and value as texts.

    The report counts topics without documents.
    """
    first = file.readline(MOST_BYTES + 1)
    try:
        value = _loaded(first)
        is_lines = not any(isinstance(each, Pairs) for _name, each in value)
    except (ValueError, TypeError, RecursionError):
        is_lines = False
    if is_lines and isinstance(value, Pairs) and value:
        yield from _each_line(path, file, first, kind)
        return
    content = first + file.read(MOST_BYTES + 1 - len(first))
    if len(content) > MOST_BYTES:
        size = MOST_BYTES // 1024**2
        text = f"it is JSON of more than {size} MiB. Save it as lines with TREC's columns."
        raise TrecFileFaults(path, [(None, CodedText(text, "too_large"))])
    value = _parsed(path, content, None)
    if isinstance(value, Pairs):
        for topic, documents in value:
            if not isinstance(documents, Pairs):
                problem = 'its value is not an object of documents, such as {"d1": 1}.'
                text = CodedText(f"topic {topic[:40]}: {problem}", "not_object")
                raise TrecFileFaults(path, [(None, text)])
            if not documents:
                report.leave_out(NO_DOCUMENTS, f"topic {topic[:40]}")
            for document, each in documents:
                named = {"topic": topic, "docno": document, _value_column(kind): _text(each)}
                yield f"topic {topic[:40]}, document {document[:40]}", named
    else:
        for number, record in enumerate(value, 1):
            yield f"record {number}", _named(path, None, record, kind)


def each_table_record(
    path: Path, kind: FileKind, report: ReadingReport
) -> Iterator[tuple[str, Named]]:
    """The same of the rows of a CSV table with a header; the report has notes on the table."""
    try:
        for row in tables.each_row(path, report=report):
            fields = Pairs((name, row.text(name).strip()) for name in row.fields)
            yield row.place.lower(), _named(path, row.line, fields, kind)
    except ImportRefused as refused:
        text = CodedText(refused.problem, refused.code)
        raise TrecFileFaults(path, [(refused.line, text)]) from None


def _each_line(
    path: Path, file: IO[bytes], first: bytes, kind: FileKind
) -> Iterator[tuple[str, Named]]:
    number, line = 1, first
    while line:
        if line.strip():
            yield f"line {number}", _named(path, number, _parsed(path, line, number), kind)
        number, line = number + 1, file.readline(MOST_BYTES + 1)


def _parsed(path: Path, content: bytes, line: int | None) -> Any:
    try:
        return _loaded(content)
    except RecursionError:
        problem = CodedText("it is JSON that is nested too deeply.", "too_deep")
    except json.JSONDecodeError as error:
        line = error.lineno if line is None else line
        problem = CodedText(f"it is not JSON: {error.msg}, column {error.colno}.", "not_json")
    except ValueError as error:
        problem = CodedText(f"it is not JSON: {error}.", "not_json")
    raise TrecFileFaults(path, [(line, problem)]) from None


def _loaded(content: bytes) -> Any:
    # Numbers stay as they are written: 1e400 is no infinite score.
    return json.loads(
        content, object_pairs_hook=Pairs, parse_float=str, parse_int=str, parse_constant=str
    )


def _named(path: Path, line: int | None, record: Any, kind: FileKind) -> Named:
    """The fields of a record that runs and qrels have."""
    if isinstance(record, Pairs):
        named = {column: _text(value) for name, value in record if (column := column_name(name))}
        if kind != "run" and "grade" not in named and "score" in named:
            named["grade"] = named.pop("score")
        if {"topic", "docno", _value_column(kind)} <= named.keys():
            return named
    problem = (
        "a record has a topic (query_id), a document (doc_id) and a "
        f"{'score' if kind == 'run' else 'grade (relevance)'}."
    )
    raise TrecFileFaults(path, [(line, CodedText(problem, "fields"))])


def _value_column(kind: FileKind) -> str:
    return "score" if kind == "run" else "grade"


def _text(value: Any) -> str:
    """A name or number as lines have it."""
    return value if isinstance(value, str) else repr(value)
