"""Figures as `<svg>` elements of a page, in its font and its colours by day and by night, and as files of their own."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

from nser.pages.style import STYLE, THEMED

DOTS = 130  # per inch of a PNG


def inline(figure: Figure, name: str, title: str) -> str:
    """The figure as an `<svg>` element whose ids begin with `name`; `title` is what a screen reader says of it.

    Links to places that are not in the figure stay as they are: they lead elsewhere on the page.
    """
    text = _saved(figure, "svg", title, transparent=True).decode()
    text = text[text.index("<svg") :]
    own = set(re.findall(r'\bid="([^"]+)"', text))

    def named(found: re.Match[str]) -> str:
        return f"{found[1]}{name}-{found[2]}" if found[2] in own else found[0]

    text = re.sub(r'(\bid="|href="#|url\(#)([^")]+)', named, text)
    for drawn, themed in THEMED.items():
        text = text.replace(drawn, themed)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def picture(figure: Figure, kind: Literal["svg", "png"], title: str) -> bytes:
    """The figure as a file on a white ground; the same figure gives the same file."""
    return _saved(figure, kind, title, dpi=DOTS)


def _saved(figure: Figure, kind: str, title: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    metadata = {"Title": title} | ({"Date": None} if kind == "svg" else {})
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format=kind, metadata=metadata, **options)
    return stream.getvalue()
