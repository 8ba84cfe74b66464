"""YAML of others as plain data, with the line of every entry; tags, anchors that multiply and deep nesting are refused."""

from pathlib import Path
from typing import Any

import yaml

from gapless import files as disk
from gapless.errors import BadInput

MOST_BYTES = 1 << 20
"""A configuration of a policy has 1 to 20 kB."""
MOST_NODES, DEEPEST = 100_000, 40
SLICE = "tag:yaml.org,2002:python/object/apply:builtins.slice"
"""Isaac Lab writes it where an action drives all joints; it is the only python tag that is understood, as None."""


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The table of a YAML file, and the line of each entry by its dotted name, such as "actions.JointPositionAction.scale"."""
    content = disk.text(path, MOST_BYTES)
    with disk.refusing(f"{path}: not valid YAML", yaml.YAMLError, RecursionError, ValueError):
        root = yaml.compose(content, yaml.SafeLoader)
        reader = _Reader(path, content)
        table = reader.plain(root, "", 0) if root is not None else {}
    if not isinstance(table, dict):
        raise BadInput(f"{path}: expected a table of names and values, not {type(table).__name__}")
    return table, reader.lines


class _Reader:
    def __init__(self, path: Path, content: str):
        self.path, self.lines, self._left = path, dict[str, int](), MOST_NODES
        self._scalars = yaml.SafeLoader(content)

    def plain(self, node: yaml.Node, name: str, depth: int) -> Any:
        """A node as plain data; a node that anchors repeat counts each time."""
        self._left -= 1
        where = f"{self.path}, line {node.start_mark.line + 1}"
        if self._left < 0 or depth > DEEPEST:
            raise BadInput(f"{where}: more than {MOST_NODES} entries, or more than {DEEPEST} levels; that is no configuration")
        self.lines.setdefault(name, node.start_mark.line + 1)
        if node.tag == SLICE:
            return None
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            raise BadInput(
                f"{where}: the tag {node.tag.removeprefix('tag:yaml.org,2002:')[:60]!r} is refused; write plain YAML"
            )
        if isinstance(node, yaml.MappingNode):
            table = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise BadInput(f"{where}: a name was expected, not a table or list")
                inner = f"{name}.{key.value}" if name else key.value
                table[key.value] = self.plain(value, inner, depth + 1)
                self.lines[inner] = key.start_mark.line + 1
            return table
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(value, f"{name}[{i}]", depth + 1) for i, value in enumerate(node.value)]
        return self._scalars.construct_object(node)
