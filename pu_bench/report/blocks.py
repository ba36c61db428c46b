"""A report as a list of blocks, rendered as Markdown or as one HTML page."""

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pu_bench.report.style import Picture

_CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.2rem 1rem 3rem; background: #fff;
  color: #222; font: 16px/1.5 system-ui, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0 .2rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .5rem; }
p, figcaption { max-width: 46rem; overflow-wrap: anywhere; }
nav { font-size: .93rem; margin: .8rem 0; }
nav a { display: inline-block; margin-right: 1rem; }
a { color: #0072b2; }
figure { margin: 1rem 0 0; }
figure img { display: block; width: 100%; max-width: 40rem; height: auto; }
figcaption { font-size: .9rem; color: #444; margin-top: .4rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
.caption { color: #444; font-size: .9rem; margin: 1.2rem 0 .4rem; break-after: avoid; }
th, td { padding: .2rem .7rem .2rem 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: #fff; }
thead th { border-bottom: 1px solid #999; font-weight: 600; vertical-align: bottom; }
thead tr.groups th { border-bottom: none; text-align: center; }
tr.rule td { border-top: 1px solid #999; }
td.text { white-space: normal; text-align: left; min-width: 14rem; }
.sd { color: #777; }
.hint { display: none; color: #666; font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: .8rem .8rem 2rem; }
  .hint { display: block; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  h2 { break-after: avoid; margin-top: 1.2rem; }
  figure, tr { break-inside: avoid; }
  figure img { max-width: 13cm; max-height: 21cm; width: auto; }
  .table { overflow: visible; }
  /* Else a wide table makes the browser shrink the whole print. */
  table { font-size: 6pt; line-height: 1.15; }
  th, td { padding: .06rem .22rem .06rem 0; }
  th { white-space: normal; }
  td.text { min-width: 0; }
  figcaption, .caption { font-size: 8.5pt; }
  .sd { display: block; font-size: .85em; }
  nav, .hint { display: none; }
}
@page { margin: 1.2cm; }
"""

_TAG = re.compile(r"<(?=[A-Za-z/!?])")


@dataclass(frozen=True)
class Heading:
    """A section's title."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Cell:
    """A table's cell: text, optionally bold, optionally followed by a spread ("± 0.01").

    `prose`: the text is a sentence, which may wrap.
    """

    text: str
    bold: bool = False
    spread: str = ""
    prose: bool = False


@dataclass(frozen=True)
class Table:
    """A table; `groups` are headings over several columns, as (text, number of columns)."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    groups: Sequence[tuple[str, int]] = ()
    rules: frozenset[int] = frozenset()  # rows with a line above them


Block = Heading | Paragraph | Table | Picture


def to_markdown(title: str, blocks: Sequence[Block], pictures: str) -> str:
    """Render as Markdown; pictures are linked as `pictures`/NAME.png."""
    parts = [f"# {title}"]
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"## {_inert(text)}")
            case Paragraph(text):
                parts.append(_inert(text))
            case Table():
                parts.append(_markdown_table(block))
            case Picture():
                link = f"![{block.alt}]({pictures}/{block.name}.png)"
                parts.append(f"{link}\n\n*{_inert(block.caption)}*")
    return "\n\n".join(parts) + "\n"


def markdown_rows(table: Table) -> str:
    """Render a table as Markdown, without its caption."""
    groups = [name for name, span in table.groups for _ in range(span)]
    head = [
        f"{group} {name}".strip() for group, name in zip(groups, table.head, strict=True)
    ] if groups else list(table.head)  # fmt: skip
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    for row in table.rows:
        lines.append(_line([_markdown_cell(cell) for cell in row]))
    return "\n".join(lines)


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Render as one self-contained HTML page, with styles and pictures embedded."""
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    links = "".join(f'<a href="#{_anchor(text)}">{html.escape(text)}</a> ' for text in headings)
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f"<nav>{links}</nav>",
        '<p class="hint">Wide tables scroll sideways.</p>',
        *map(_html_block, blocks),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _html_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f'<h2 id="{_anchor(text)}">{html.escape(text)}</h2>'
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Picture():
            data = base64.b64encode(block.png).decode()
            return (
                f'<figure id="{block.name}">\n<img alt="{html.escape(block.alt)}" '
                f'src="data:image/png;base64,{data}">\n'
                f"<figcaption>{html.escape(block.caption)}</figcaption>\n</figure>"
            )
        case Table():
            return _html_table(block)


def _html_table(table: Table) -> str:
    head = "<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in table.head) + "</tr>"
    if table.groups:
        groups = "".join(
            f'<th colspan="{span}">{html.escape(name)}</th>' for name, span in table.groups
        )
        head = f'<tr class="groups">{groups}</tr>\n{head}'
    rows = []
    for number, row in enumerate(table.rows):
        rule = ' class="rule"' if number in table.rules else ""
        rows.append(f"<tr{rule}>{''.join(map(_html_cell, row))}</tr>")
    body = "\n".join(rows)
    return (
        # The caption is outside the box that scrolls sideways, to be readable on a phone.
        f'<p class="caption">{html.escape(table.caption)}</p>\n<div class="table"><table>\n'
        f"<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _html_cell(cell: Cell) -> str:
    text = html.escape(cell.text)
    if cell.bold:
        text = f"<strong>{text}</strong>"
    if cell.spread:
        text += f'<span class="sd"> {html.escape(cell.spread)}</span>'
    return f'<td class="text">{text}</td>' if cell.prose else f"<td>{text}</td>"


def _markdown_table(table: Table) -> str:
    return f"{_inert(table.caption)}\n\n{markdown_rows(table)}"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.bold else cell.text
    return f"{text} {cell.spread}".strip()


def _line(cells: Sequence[str]) -> str:
    # A user's name may contain characters that would end the cell or the table.
    safe = [_inert(cell).replace("|", "\\|").replace("\n", " ") for cell in cells]
    return "| " + " | ".join(safe) + " |"


def _inert(text: str) -> str:
    """`text` for Markdown, with what would begin an HTML tag escaped.

    Not by a backslash: one that stands before it already would take it away.
    """
    return _TAG.sub("&lt;", text)


def _anchor(text: str) -> str:
    return "".join(sign if sign.isalnum() else "-" for sign in text.lower())
