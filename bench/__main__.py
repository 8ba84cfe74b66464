"""List the measurements, one a line, for `make bench`."""

from pathlib import Path

for file in sorted(Path(__file__).parent.glob("*.py")):
    if "--json" in file.read_text() and file.stem != "__main__":
        print(file.stem)
