"""Writing settings down: one template a framework, which reads as what it makes and says what the framework cannot do.

Whatever comes from files goes through one of the filters, so that no name of a joint can be read as code.
"""

import math
import re
import textwrap
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import mujoco

from gapless.errors import BadInput, unknown
from gapless.twin.belief import Belief
from gapless.twin.export.settings import Number, gather

FRAMEWORKS = ("mjlab", "isaaclab", "playground")
"""Each is the name of a template beside this file."""


def export(framework: str, model: mujoco.MjModel, belief: Belief, summary: Mapping[str, Any]) -> str:
    """A fit (see `settings.read`) as a Python file for one of the `FRAMEWORKS`."""
    import jinja2

    if framework not in FRAMEWORKS:
        raise unknown("framework", framework, FRAMEWORKS)
    # what is made is Python, not HTML: the filters make names and numbers safe there
    loader = jinja2.PackageLoader("gapless.twin", "export")
    made = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    made.filters |= FILTERS
    return made.get_template(f"{framework}.jinja").render(s=gather(model, belief, summary), version=version("gapless"))


def _number(x: float) -> str:
    if not math.isfinite(x):
        raise BadInput(f"a fit with the number {x} in it cannot be exported")
    return f"{x:.6g}"


def _value(n: Number) -> str:
    """A value with a comma, and behind it its interval or why it has none."""
    remarks = [f"{n.low:.4g} to {n.high:.4g}"] * n.drawn + [n.remark] * bool(n.remark)
    return f"{_number(n.value)}," + (f"  # {_clean('; '.join(remarks))}" if remarks else "")


def _clean(text: str) -> str:
    """One printable line."""
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in " ".join(text.split()))


def _scaled(numbers: dict[str, Number], properties: dict[str, str]) -> dict[str, Number]:
    """Property to what its fitted value is multiplied by, where it is to be drawn."""
    fitted = {name: numbers[quantity] for name, quantity in properties.items()}
    return {name: n.times(1 / n.value) for name, n in fitted.items() if n.drawn and n.value > 0}


FILTERS = {
    "scaled": _scaled,
    "comment": lambda text: "\n".join(textwrap.wrap(_clean(text), 118, initial_indent="# ", subsequent_indent="# ")),
    "text": ascii,
    "pattern": lambda name: ascii(re.escape(name)),
    "number": _number,
    "pair": lambda n: f"({_number(n.low)}, {_number(n.high)})",
    "value": _value,
    "fitted": lambda n: _clean("; ".join([f"fitted {n.value:.6g}"] + [n.remark] * bool(n.remark))),
    "how": lambda numbers: "log_uniform" if all(n.low > 0 and (n.log or not n.drawn) for n in numbers) else "uniform",
}
