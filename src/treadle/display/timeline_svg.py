"""A timeline as an SVG picture: a row for each visit, one colour for each outcome, another for waiting."""

from __future__ import annotations

from treadle.display.drawing import frame, text_of, write
from treadle.display.timeline import Bar, Span, Timeline
from treadle.display.words import clip, duration

ROWS_MAX = 150
"""Rows of a picture: a taller one cannot be read. The other visits are counted below it."""
ROW, PLOT, TOP = 22.0, 640.0, 46.0
BAR_MIN = 3.0
"""The least width of a bar: a visit that took no time is still seen."""
STYLE = """
.t .completed{fill:$green}.t .failed,.t .timed_out{fill:$red}.t .cancelled{fill:$grey}
.t .live{fill:$blue}.t .pending{fill:$grey;opacity:.35}.t .waiting{fill:$amber;opacity:.45}
.t .grid{stroke:$line;opacity:.3}.t .band{fill:$face}
"""
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000)
_LONG_STEPS = (600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000)


def timeline_svg(run: Timeline) -> str:
    """The picture, as SVG text."""
    bars = run.bars[:ROWS_MAX]
    left = max([90.0, *(len(clip(bar.label, 30)) * 7.0 + 24 for bar in bars)])
    length = max(run.end - run.start, 1)
    rest = len(run.bars) - len(bars)
    height = TOP + ROW * len(bars) + (34 if rest else 16)
    head = f"{run.workflow} · {run.status.replace('_', ' ')} · {duration(run.end - run.start)}"
    body = [write(12, 20, clip(head, 90), "bold")]
    body += _axis(length, left, TOP + ROW * len(bars))
    for index, bar in enumerate(bars):
        y = TOP + ROW * index
        if index % 2:
            body.insert(0, f'<rect class="band" x="0" y="{y:.1f}" width="100%" height="{ROW:.0f}"/>')
        body.append(write(left - 10, y + 15, clip(bar.label, 30), "end"))
        body += _bar(bar, run.start, length, left, y)
    if rest:
        body.append(write(12, height - 12, f"and {rest} more visits", "small"))
    return frame(left + PLOT + 90, height, head, body, STYLE)


def _axis(length: int, left: float, bottom: float) -> list[str]:
    whole = max(1, -(-length // (86_400_000 * 6))) * 86_400_000
    step = next((step for step in (*_STEPS, *_LONG_STEPS) if length / step <= 8), whole)
    found = []
    for at in range(0, length + 1, step):
        x = left + at / length * PLOT
        found.append(f'<path class="grid" d="M{x:.1f} {TOP - 6:.1f}V{bottom:.1f}"/>')
        found.append(write(x, TOP - 10, duration(at) if at else "0", "small mid"))
    return found


def _bar(bar: Bar, start: int, length: int, left: float, y: float) -> list[str]:
    found, right = [], left
    spans = bar.spans or [Span("pending", bar.start, bar.start)]
    for index, span in enumerate(spans):
        x = left + (span.start - start) / length * PLOT
        width = max((span.end - span.start) / length * PLOT, BAR_MIN)
        last = index == len(spans) - 1
        kind = bar.state if span.state == "executing" or (last and span.start == span.end) else span.state
        told = f"{bar.label}: {span.reason or span.state}, {duration(span.end - span.start)}"
        told += f", attempt {bar.attempt}" if bar.attempt > 1 else ""
        size = f'x="{x:.1f}" y="{y + 5:.1f}" width="{width:.1f}" height="{ROW - 10:.0f}" rx="2"'
        found.append(f'<rect class="{kind}" {size}><title>{text_of(told)}</title></rect>')
        if span.reason and width > len(span.reason) * 6.5 + 8:
            found.append(write(x + 5, y + 15, span.reason, "small"))
        right = max(right, x + width)
    if bar.state in ("failed", "timed_out"):
        mark = write(right + 4, y + 15, "✗", "small")
        found.append(mark.replace("</text>", f"<title>{text_of(bar.error or bar.state)}</title></text>"))
    return found
