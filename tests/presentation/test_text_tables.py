"""Tables as text."""

from presentation.text_tables import printable, text_table


def test_a_cell_stays_in_its_line_and_steers_no_terminal():
    table = text_table(("run", "mean"), [("a\x1b[31m\x9b\nb", ".5"), ("naïve\u202e", ".41")])
    assert table.split("\n") == [
        "run        mean",
        "a\ufffd[31m\ufffd\ufffdb  .5",
        "naïve\ufffd     .41",
    ]
    assert printable("a\tb\r\x00\nc") == "a\tb\ufffd\ufffd\nc"
