"""A vocabulary as a table for a terminal of 80 columns."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nser.grounding.vocabulary import Vocabulary
from nser.rules.signature import PredicateSignature

SHOWN = 12  # constants of a sort; an automatic vocabulary may have thousands


def vocabulary_table(vocabulary: Vocabulary) -> RenderableType:
    """A line for each predicate, below it what it means and an example; then the constants of each sort."""
    known = vocabulary.signature.predicates
    title = Text(f"{vocabulary.name}: {len(known)} predicates", style="bold")
    parts: list[RenderableType] = [title, _line(*(Text(word, style="dim") for word in ("", "kind", "unit", "range")))]
    for signature in known.values():
        usage = f"{signature.name}({', '.join(('t', *signature.sorts))})"
        kind = signature.kind if signature.scope == "state" else f"{signature.kind}, {signature.scope}"
        parts.append(_line(Text(usage, style="bold"), Text(kind), Text(signature.unit), Text(_range(signature))))
        parts.append(Padding(Text(signature.doc), (0, 0, 0, 4)))
        parts.append(Padding(Text(vocabulary.examples[signature.name], style="dim"), (0, 0, 0, 4)))
    if vocabulary.sorts:
        parts.append(Text("\nconstants", style="bold"))
    for sort, constants in vocabulary.sorts.items():
        more = f" and {len(constants) - SHOWN} more" if len(constants) > SHOWN else ""
        parts.append(Padding(Text(f"{sort}: {', '.join(constants[:SHOWN])}{more}"), (0, 0, 0, 2)))
    return Group(*parts)


def _range(signature: PredicateSignature) -> str:
    if signature.kind == "truth":
        return "0 to 1"
    low = "–∞" if signature.low is None else f"{signature.low:g}"
    high = "∞" if signature.high is None else f"{signature.high:g}"
    return "" if signature.low is None and signature.high is None else f"{low} to {high}"


def _line(*cells: Text) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    for width in (40, 13, 11, 12):
        table.add_column(width=width, no_wrap=True)
    table.add_row(*cells)
    return table
