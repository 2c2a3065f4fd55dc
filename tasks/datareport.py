"""What a check of data found, as one JSON record and as a page to look at. The same data make the same bytes."""

from collections.abc import Iterator
from html import escape
from typing import Any

from papo.printable import printable
from schemas.canonical import sha256_of
from tasks.datacheck import FLAGS, Checked, Finding
from tasks.datarows import DataRow

SHOWN = 200
"""Findings of one reason on the page; the record has all."""
LONGEST = 600
MEANINGS = {
    "faulty": "cannot be read as a row: removed",
    "repeated_id": "has the id of an earlier row: removed",
    "unverifiable": "the reference does not verify against itself: removed",
    "duplicate": "prompt and reference of an earlier row: removed",
    "conflict": "one prompt with several references: all of them are removed",
    "overlong": "too many tokens after the template: removed",
    "overlap_exact": "the prompt is in the evaluation data: removed from training",
    "overlap_words": "shares eight words in a row with an evaluation prompt: removed from training",
    "never_solved": "the policy solved it in none of its tries: removed",
    "always_solved": "the policy solved it in all of its tries: stays, look at it",
    "unclear": "the reference may hold several values: stays, look at it",
}
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222;"
    "background:#fff}table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}"
    "td,th{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    "td.text{white-space:pre-wrap;overflow-wrap:anywhere}summary{cursor:pointer}"
)


def report_of(checked: Checked, *, reward_version: str) -> dict[str, Any]:
    """Counts, and every finding with the row's id and place."""
    splits = {
        split: {"rows": len(rows), "clean": len(checked.clean(split))} for split, rows in sorted(checked.rows.items())
    }
    findings = [_record(found) for found in checked.findings]
    record = {
        "format": 1,
        "reward": reward_version,
        "splits": splits,
        "reasons": checked.counts(),
        "common_word_runs": checked.common,
        "findings": findings,
    }
    return {**record, "sha256": sha256_of(record)}


def page_of(checked: Checked, *, title: str) -> str:
    """A page without scripts or anything from elsewhere; all that rows hold is escaped, and nothing of it hidden."""
    return "".join(_page(checked, title)).encode("utf-8", "backslashreplace").decode()


def _page(checked: Checked, title: str) -> Iterator[str]:
    named = escape(printable(title))
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{named}</title><style>{_STYLE}</style>'
    yield f"<h1>{named}</h1><table><tr><th>split<th>rows<th>clean</tr>"
    for split, rows in sorted(checked.rows.items()):
        yield f"<tr><td>{split}<td>{len(rows)}<td>{len(checked.clean(split))}</tr>"
    yield "</table>"
    counts = checked.counts()
    if not counts:
        yield "<p>Nothing was found.</p>"
    for reason, count in counts.items():
        found = [finding for finding in checked.findings if finding.reason == reason]
        is_open = "" if reason in FLAGS else " open"
        yield f"<details{is_open}><summary><b>{reason}</b>: {count} – {MEANINGS[reason]}</summary><table>"
        yield "<tr><th>row<th>why<th>prompt<th>reference<th>other row</tr>"
        yield from (_line(finding) for finding in found[:SHOWN])
        yield "</table>"
        yield f"<p>{count - SHOWN} more are in the JSON report.</p>" if count > SHOWN else ""
        yield "</details>"
    yield "</html>\n"


def _line(found: Finding) -> str:
    row, other = found.row, found.other
    cells = [_named(row), found.detail, _cut(row.prompt), _cut(row.reference_answer)]
    cells.append("" if other is None else f"{_named(other)}\n{_cut(other.prompt)}\n→ {_cut(other.reference_answer)}")
    return "<tr>" + "".join(f'<td class="text">{escape(printable(cell))}' for cell in cells) + "</tr>"


def _named(row: DataRow) -> str:
    return f"{row.split} {row.prompt_id}\n{row.place}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _record(found: Finding) -> dict[str, Any]:
    other = found.other
    named = None if other is None else {"split": other.split, "prompt_id": other.prompt_id, "place": other.place}
    return {
        "split": found.row.split,
        "prompt_id": found.row.prompt_id,
        "place": found.row.place,
        "reason": found.reason,
        "detail": found.detail.encode("utf-8", "backslashreplace").decode(),
        "other": named,
    }
