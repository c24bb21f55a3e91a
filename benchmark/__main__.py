"""`python -m benchmark [--quick] [names]`: run the benchmarks found next to this file, all or those named."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from types import ModuleType


def find_modules() -> dict[str, ModuleType]:
    """Return every module of this folder that offers `main(arguments)`, by name."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("__"))
    modules = {name: importlib.import_module(f"benchmark.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "main")}


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks one after the other, and return 1 where one failed."""
    modules = find_modules()
    parser = argparse.ArgumentParser(prog="python -m benchmark", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join(modules)}; all where none is named")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that everything runs")
    arguments = parser.parse_args(argv)
    unknown = [name for name in arguments.names if name not in modules]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(modules)}")
    failed = []
    for name in arguments.names or modules:
        print(f"== {name}", flush=True)
        started = time.perf_counter()
        if modules[name].main(arguments):
            failed.append(name)
        print(f"== {name} took {time.perf_counter() - started:.1f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
