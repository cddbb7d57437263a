from presentation.documents import Number, P
from presentation.text_tables import printable, text_report, text_table


def test_a_cell_stays_in_its_line_and_steers_no_terminal():
    table = text_table(("run", "mean"), [("a\x1b[31m\x9b\nb", ".5"), ("naïve\u202e", ".41")])
    assert table.split("\n") == [
        "run        mean",
        "a\ufffd[31m\ufffd\ufffdb  .5",
        "naïve\ufffd     .41",
    ]
    assert printable("a\tb\r\x00\nc") == "a\tb\ufffd\ufffd\nc"


def test_a_number_without_a_value_or_an_interval_has_the_reason():
    cells = [
        Number(0.5, 3, 0.25, 0.75),
        Number(0.5, 3, no_interval="one topic"),
        Number(None, reason="no topic"),
        P(0.0001),
        12345,
    ]
    assert text_table(["a"], [[cell] for cell in cells]).splitlines()[1:] == [
        "0.500 [0.250, 0.750]",
        "0.500 (a)",
        "undefined (b)",
        "<.001",
        "12,345",
        "(a) one topic",
        "(b) no topic",
    ]


def test_a_report_has_a_blank_line_between_parts_and_the_notes_last():
    lines = text_report(["one", "", "two\x1b"], ["few", "more"]).splitlines()
    assert lines == ["one", "", "two\ufffd", "", "Note: few.", "Note: more."]
