"""Reports of what was read from a file."""

import json

from annotation.readers.report import ReadingReport
from error_codes import CodedText

NO_ITEM = CodedText("the row has no item", "no_item")
SPAN = CodedText("spans are not read yet", "spans")


def filled_report() -> ReadingReport:
    report = ReadingReport(n_rows=5597, policies={"repeats": "refuse"})
    for line in range(2, 7):
        report.leave_out(NO_ITEM, f"line {line}")
    report.leave_out_part(SPAN, "record 3", n=12)
    report.note_missing("NULL", 33)
    report.note_missing("")
    report.note(CodedText("Yes/yes", "case"))
    report.note(CodedText("Yes/yes", "case"))
    return report


def test_rows_used_and_left_out_are_the_rows_read() -> None:
    report = filled_report()
    assert report.n_used == 5592
    assert report.left_out["no_item"].places == ["line 2", "line 3", "line 4"]
    assert report.missing.total() == 34
    assert [note.code for note in report.notes] == ["case"]


def test_the_plain_form_is_json_and_makes_the_report_again() -> None:
    report = filled_report()
    plain = json.loads(json.dumps(report.plain()))
    assert ReadingReport.from_plain(plain) == report
    assert plain["left_out"] == [
        {
            "code": "no_item",
            "reason": str(NO_ITEM),
            "n": 5,
            "places": ["line 2", "line 3", "line 4"],
        }
    ]
    assert plain["n_rows"] == plain["n_used"] + sum(each["n"] for each in plain["left_out"])


def test_sentences_show_every_count() -> None:
    text = " ".join(filled_report().sentences())
    for part in ("5,597", "5,592", "5 rows", "12", "34", "'NULL'", "line 4, …", "Yes/yes"):
        assert part in text
