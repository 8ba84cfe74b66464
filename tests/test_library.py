"""`import gapless`: its nouns and verbs, loaded when they are used, under the names that they have in their packages."""

import ast
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import gapless

HEAVY = ("mujoco", "numpy", "numba", "scipy", "torch", "plotly")


def loaded(code: str) -> list[str]:
    """The heavy packages that are in memory after some code ran in a fresh interpreter."""
    code = f"import sys\n{code}\nprint('LOADED', *(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.rpartition("LOADED")[2].split()


def test_importing_gapless_and_asking_for_help_loads_nothing_heavy():
    assert loaded("import gapless; dir(gapless)") == []
    ask = "from gapless.cli import main\ntry: main(['{}--help'])\nexcept SystemExit: pass"
    assert loaded(ask.format("")) == []
    commands = ("robots", "inspect", "replay", "gap", "fit", "excite", "export", "standin", "train", "course")
    calls = "\n".join(f"try: main(['{command}', '--help'])\nexcept SystemExit: pass" for command in commands)
    assert loaded(f"from gapless.cli import main\n{calls}") == []


def test_every_name_is_there_and_is_that_of_its_package():
    assert 10 <= len(gapless.__all__) <= 24
    assert set(dir(gapless)) == {*gapless.__all__, "__version__"}
    for home, names in gapless._HOMES.items():
        package = __import__(f"gapless.{home}", fromlist=["x"])
        for name in names:
            assert getattr(gapless, name) is getattr(package, name)
    assert sorted(n for names in gapless._HOMES.values() for n in names) == sorted(gapless.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gapless.nothing


def test_no_name_is_that_of_a_package_which_importing_would_put_in_its_place():
    assert not {m.name for m in pkgutil.iter_modules(gapless.__path__)} & set(gapless.__all__)


def test_a_type_checker_sees_the_same_names():
    tree = ast.parse(Path(gapless.__file__).read_text())
    typed = next(n for n in tree.body if isinstance(n, ast.If))
    seen = {(n.module.partition(".")[2], a.name) for n in typed.body for a in n.names}
    assert seen == {(home, name) for home, names in gapless._HOMES.items() for name in names}


def test_every_verb_says_what_it_does():
    for name in gapless.__all__:
        assert inspect.getdoc(getattr(gapless, name)), name
