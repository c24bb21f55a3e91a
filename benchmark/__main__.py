"""`python -m benchmark [--quick] [names]`: run the benchmarks found next to this file, all or those named."""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent


def find_benchmarks() -> list[str]:
    """Return the modules of this folder that define `main(arguments)`; they are read, not imported."""
    return [path.stem for path in sorted(FOLDER.glob("*.py")) if path != Path(__file__) and _has_main(path)]


def _has_main(path: Path) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and node.name == "main" and [a.arg for a in node.args.args] == ["arguments"]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
    )


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks one after the other, and return 1 where one failed."""
    known = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmark", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join(known)}; all where none is named")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that everything runs")
    arguments = parser.parse_args(argv)
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(known)}")
    failed = []
    for name in arguments.names or known:
        print(f"== {name}", flush=True)
        started = time.perf_counter()
        if importlib.import_module(f"benchmark.{name}").main(arguments):
            failed.append(name)
        print(f"== {name} took {time.perf_counter() - started:.1f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
