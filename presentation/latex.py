r"""A report as LaTeX: tables in the manner of booktabs, and a file that holds them all.

A table is a fragment to `\input` where `booktabs` and `graphicx` (and `longtable`, for a table
over several pages) are loaded. Everything compiles with pdflatex.
"""

import re
from itertools import accumulate

from presentation.documents import (
    Cell,
    Column,
    Document,
    Figure,
    Number,
    P,
    Part,
    Table,
    Verbatim,
    cell_text,
    printed_text,
)

# A table of more rows, or with a cell of more characters, runs over pages, with lines that break.
# One of more columns and few rows would be small: it has its rows as columns.
LONG, WORDY, WIDE, FEW = 35, 80, 8, 2
# The class leaves no space between a caption and the table below it.
ABOVE = r"\setlength{\abovetopsep}{1ex}"
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": "'",
    "–": "--",
    "—": "---",
    "−": r"\ensuremath{-}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "…": r"\ldots{}",
    "×": r"\ensuremath{\times}",
    "→": r"\ensuremath{\to}",
    "≥": r"\ensuremath{\ge}",
    "≤": r"\ensuremath{\le}",
    "ρ": r"\ensuremath{\rho}",
    "τ": r"\ensuremath{\tau}",
    "α": r"\ensuremath{\alpha}",
}
# Letters of Latin-1 that the standard fonts have, with their accents.
LETTERS = set("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=25mm]{geometry}
\usepackage{textcomp,booktabs,graphicx,longtable,array,float}
\providecommand{\textquotedbl}{''}
\emergencystretch=3em
\setlength{\LTcapwidth}{\textwidth}
\floatplacement{figure}{H}
\floatplacement{table}{H}
"""


def document_latex(document: Document, *, tables: str = "tables", pictures: str = "figures") -> str:
    lines = [PREAMBLE, rf"\title{{{escape_latex(document.title)}}}", r"\date{}"]
    lines += [r"\begin{document}", r"\maketitle"]
    if document.answer:
        lines += ["", rf"\noindent\textbf{{{escape_latex(document.answer)}}}"]
    for section in document.sections:
        lines += ["", rf"\section{{{escape_latex(section.title)}}}"]
        for part in section.parts:
            lines += ["", _part(part, tables, pictures)]
    return "\n".join([*lines, r"\end{document}", ""])


def _part(part: Part, tables: str, pictures: str) -> str:
    if isinstance(part, Table):
        printed = rf"\input{{{tables}/{part.name}.tex}}"
        return printed if part.is_printed else escape_latex(part.file_note)
    if isinstance(part, Figure):
        return _figure(part, pictures)
    return _verbatim(part) if isinstance(part, Verbatim) else escape_latex(part)


def _verbatim(part: Verbatim) -> str:
    lines = [rf"{escape_latex(line)}\par" if line.strip() else r"\medskip" for line in part.lines]
    quoted = [r"\begin{quote}\setlength{\parindent}{0pt}", *lines, r"\end{quote}"]
    return "\n".join([f"{escape_latex(part.caption)}:", *quoted])


def _figure(figure: Figure, pictures: str) -> str:
    return "\n".join(
        [
            r"\begin{figure}\centering",
            rf"\sbox0{{\includegraphics{{{pictures}/{figure.name}.pdf}}}}%",
            r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
            rf"\caption{{{escape_latex(figure.caption)}. {escape_latex(figure.words)}}}",
            rf"\label{{fig:{figure.name}}}",
            r"\end{figure}",
        ]
    )


def table_latex(table: Table) -> str:
    if len(table.columns) > WIDE and len(table.rows) <= FEW and not table.groups:
        heads, *rows = zip([one.title for one in table.columns], *table.rows, strict=True)
        columns = [Column(cell_text(one), is_number=at > 0) for at, one in enumerate(heads)]
        return table_latex(Table(table.name, table.caption, columns, rows, table.note))
    is_long = len(table.rows) > LONG or max(_widths(table), default=0) > WORDY
    return _long(table) if is_long else _float(table)


def _widths(table: Table) -> list[int]:
    """Characters of the longest cell of each column."""
    return [max(len(cell_text(cell)) for cell in cells) for cells in zip(*table.rows, strict=True)]


def _float(table: Table) -> str:
    body = [
        rf"\begin{{tabular}}{{{''.join('lr'[column.is_number] for column in table.columns)}}}",
        *_head(table),
        *(_line(table, row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    note = escape_latex(table.full_note)
    return "\n".join(
        [
            rf"\begin{{table}}\centering{ABOVE}",
            rf"\caption{{{escape_latex(table.caption)}}}",
            rf"\label{{tab:{table.name}}}",
            r"\sbox0{%",
            *body[:-1],
            body[-1] + "}%",
            r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
            *[rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {note}}}"] * bool(note),
            r"\end{table}",
            "",
        ]
    )


def _long(table: Table) -> str:
    head = _head(table)
    note = escape_latex(table.full_note)
    return "\n".join(
        [
            rf"\begingroup\scriptsize\setlength{{\tabcolsep}}{{3pt}}{ABOVE}",
            rf"\begin{{longtable}}{{{_breaking(table)}}}",
            rf"\caption{{{escape_latex(table.caption)}}}\label{{tab:{table.name}}}\\",
            *head,
            r"\endfirsthead",
            *head,
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *(_line(table, row) for row in table.rows),
            *[rf"\multicolumn{{{len(table.columns)}}}{{p{{.95\linewidth}}}}{{{note}}}\\"]
            * bool(note),
            r"\end{longtable}",
            r"\endgroup",
            "",
        ]
    )


def _breaking(table: Table) -> str:
    widths = [min(max(width, 8), WORDY) for width in _widths(table)]
    parts = [rf"{width / sum(widths):.3f}\linewidth" for width in widths]
    return "".join(map(_paragraph, table.columns, parts))


def _paragraph(column: Column, width: str) -> str:
    side = r"\raggedleft" if column.is_number else r"\raggedright"
    # a first word is hyphenated only after some space
    inside = rf">{{{side}\hspace{{0pt}}\arraybackslash}}"
    return rf"{inside}p{{\dimexpr{width}-2\tabcolsep\relax}}"


def _head(table: Table) -> list[str]:
    titles = " & ".join(_guarded(escape_latex(column.title)) for column in table.columns)
    if not table.groups:
        return [r"\toprule", rf"{titles} \\", r"\midrule"]
    spans = " & ".join(
        rf"\multicolumn{{{size}}}{{{'c' if title else 'l'}}}{{{escape_latex(title)}}}"
        for title, size in table.groups
    )
    ends = accumulate(size for _, size in table.groups)
    rules = "".join(
        rf"\cmidrule(lr){{{end - size + 1}-{end}}}"
        for (title, size), end in zip(table.groups, ends, strict=True)
        if title
    )
    return [r"\toprule", rf"{spans} \\", rules, rf"{titles} \\", r"\midrule"]


def _line(table: Table, row: tuple[Cell, ...]) -> str:
    return " & ".join(_cell(table, cell) for cell in row) + r" \\"


def _cell(table: Table, cell: Cell) -> str:
    text = escape_breakable(printed_text(cell))
    if letter := table.letter(cell):
        text += rf"\textsuperscript{{{letter}}}"
    is_best = isinstance(cell, Number | P) and cell.is_best
    return rf"\textbf{{{text}}}" if is_best else _guarded(text)


def _guarded(text: str) -> str:
    # A bracket or star at the start of a row would be read as an option of what ends the last.
    return rf"{{}}{text}" if text[:1] in ("[", "*") else text


def escape_breakable(text: str) -> str:
    return re.sub(r"(\\textbar\{\}|\\_|:|/|,)", r"\1\\allowbreak{}", escape_latex(text))


def escape_latex(text: str) -> str:
    return "".join(map(_escape, " ".join(text.split())))


def _escape(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if 32 <= ord(character) < 127 or character in LETTERS:
        return character
    return rf"\texttt{{U+{ord(character):04X}}}"
