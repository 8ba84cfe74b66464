"""Every command and every piece of Python in the docs and in the commands' own help is one that exists, options and all."""

import ast
import functools
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import tyro

import gapless
from gapless.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])
FUNCTIONS = {name: getattr(import_module(f"gapless.cli.{name}"), name) for name in COMMANDS}


def commands(text):
    """Lines of shell that start with gapless, in indented blocks and between backticks; not those with an ellipsis."""
    lines = re.findall(r"^(?: {4}|\$ )(gapless [^\n]*)$", text, re.MULTILINE) + re.findall(r"`(gapless [a-z]+ [^`]*)`", text)
    for line in (re.sub(r"\s+", " ", re.split(r"\s+#|\s+>\s|\s+\|\s", each)[0]) for each in lines):
        if "..." not in line and "COMMAND" not in line:
            yield line


TEXTS = [(page.name, page.read_text()) for page in PAGES] + [(f"{n} --help", f.__doc__) for n, f in FUNCTIONS.items()]
COMMAND_LINES = sorted({(where, line) for where, text in TEXTS for line in commands(text)})
PYTHON = [
    (page.name, block) for page in PAGES for block in re.findall(r"```python\n(?!--8<--)(.*?)```", page.read_text(), re.DOTALL)
]


def parsed(words):
    """What a command's own parser makes of words, without running it."""

    @functools.wraps(FUNCTIONS[words[0]])
    def stub(*args, **options):
        return options

    return tyro.cli(stub, args=words[1:], config=(tyro.conf.OmitArgPrefixes,))


def test_every_page_of_the_docs_is_in_the_navigation_of_the_site_and_exists():
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    named = re.findall(r"\S+\.md", text)
    made = {"reference/index.md"}  # by docs/reference.py
    assert sorted(set(named) - made) == sorted(page.name for page in ROOT.glob("docs/*.md"))


def test_every_example_is_shown_in_the_docs():
    shown = (ROOT / "docs/examples.md").read_text()
    assert all(path.name in shown for path in ROOT.glob("examples/*.py"))


def test_there_are_commands_to_check():
    assert len(COMMAND_LINES) > 40
    assert {line.split()[1] for _, line in COMMAND_LINES} == set(COMMANDS)


@pytest.mark.parametrize(("where", "line"), COMMAND_LINES)
def test_every_command_in_the_docs_parses(where, line, capsys):
    words = shlex.split(line)[1:]
    assert words[0] in COMMANDS
    try:
        parsed(words)
    except SystemExit:
        pytest.fail(f"{where}: {line}\n{capsys.readouterr()}")


def test_a_command_that_does_not_exist_would_be_noticed():
    with pytest.raises(SystemExit):
        parsed(["gap", "arm", "log.npz", "--no-such-option"])


def test_a_callable_is_checked_as_the_docs_say():
    (block,) = [block for where, block in PYTHON if where == "check.md" and "lambda" in block]
    exec(compile(block, "check.md", "exec"), {})


@pytest.mark.parametrize(("where", "block"), PYTHON)
def test_python_in_the_docs_parses_and_imports_what_exists(where, block):
    tree = ast.parse(block)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gapless"):
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), f"{where}: {ast.unparse(node)}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gapless":
            assert hasattr(gapless, node.attr) or import_module(f"gapless.{node.attr}"), f"{where}: {ast.unparse(node)}"
