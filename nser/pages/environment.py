"""The templates of a page: those of one package, and beside them what all pages share."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from nser.percent import percent

SHARED = "nser.pages"


def environment(package: str) -> Environment:
    """Templates that lie in `package`, e.g. "nser.report", and those that lie here.

    `base.html` frames a page and includes the package's own `page.css`. Values are escaped in HTML, and a value that
    a template asks for and is not given raises `jinja2.UndefinedError`. `percent` is at hand.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(SHARED, ".")]),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["percent"] = percent
    return made
