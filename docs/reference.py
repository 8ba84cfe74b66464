"""Makes the reference pages of the site: for each package, what its `__init__` offers, from the docstrings."""

import ast
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parents[1] / "src" / "gapless"
LOOP = (
    "robots",
    "logs",
    "twin",
    "worlds",
    "measure",
    "gap",
    "identify",
    "explain",
    "policy",
    "learn",
    "check",
    "close",
    "report",
)
PACKAGES = [name for name in LOOP if (SOURCE / name / "__init__.py").is_file()]


def on_config(config: MkDocsConfig) -> None:
    """Name the pages in the navigation, under its last heading."""
    config.nav[-1]["Reference"] += [f"reference/{name}.md" for name in PACKAGES]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add one page a package, and one that lists them."""
    lines = ["# Reference", "", "What each package offers, in the order of the loop; what is below a package may change.", ""]
    for name in PACKAGES:
        says = (ast.get_docstring(ast.parse((SOURCE / name / "__init__.py").read_text())) or "").partition("\n")[0]
        lines.append(f"- [gapless.{name}]({name}.md): {says.partition(': ')[2] or says}")
        files.append(File.generated(config, f"reference/{name}.md", content=page(name)))
    files.append(File.generated(config, "reference/index.md", content="\n".join(lines) + "\n"))


def page(package: str) -> str:
    """A package's page: its own docstring, then every function and class that its `__init__` imports from below itself."""
    tree = ast.parse((SOURCE / package / "__init__.py").read_text())
    blocks = [f"# gapless.{package}", "", f"::: gapless.{package}\n    options: {{show_root_heading: false, members: []}}", ""]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"gapless.{package}."):
            for alias in (a for a in node.names if not a.name.isupper()):
                heading = f"\n    options: {{heading: {alias.asname}, toc_label: {alias.asname}}}" if alias.asname else ""
                blocks.append(f"::: {node.module}.{alias.name}{heading}\n")
    return "\n".join(blocks)
