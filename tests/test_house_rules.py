"""Rules of the tree that no linter knows: packages are used through their surface, files and functions stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST_FILE, LONGEST_FUNCTION = 450, 70  # lines


def sources(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def package(path: Path) -> str:
    """The package that a source or test file belongs to, empty for those that belong to none."""
    inside = path.parts[2:] if path.parts[0] == "src" else path.parts[1:]
    return inside[0] if len(inside) > 1 else ""


def test_packages_are_used_through_their_surface():
    below = [
        f"{path}:{node.lineno} {node.module}"
        for path, tree in sources("src", "tests", "bench", "examples")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gapless.")
        if (node.module or "").count(".") > 1 and (node.module or "").split(".")[1] != package(path)
    ]
    assert not below


def test_files_and_functions_are_short():
    sizes = {
        f"{path}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno
        for path, tree in sources("src")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert not [name for name, size in sizes.items() if size > LONGEST_FUNCTION]
    assert not [path for path, _ in sources("src") if len((ROOT / path).read_text().splitlines()) > LONGEST_FILE]


@pytest.mark.xdist_group("house")
def test_tests_that_share_a_fixture_reach_one_worker(request):
    groups = getattr(request.config.option, "loadgroup", False)  # set in a worker of `--dist=loadgroup`
    assert not groups or request.node.nodeid.endswith("@house")  # else this pytest ignores groups, and fixtures are made twice
