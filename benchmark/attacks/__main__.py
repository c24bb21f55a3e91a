"""`python -m benchmark.attacks --kind model --count 10000`: attack what the product reads, and count the outcomes."""

from __future__ import annotations

import argparse
import sys
import time

from benchmark.attacks.page import note
from benchmark.attacks.worker import BAD, Report, attack

# By the name of their kind, in which module they lie: those are imported by the process that is attacked.
KINDS = {
    "model": "benchmark.attacks.models:Models",
    "scenario": "benchmark.attacks.texts:Scenarios",
    "mapping": "benchmark.attacks.texts:Mappings",
    "words": "benchmark.attacks.texts:Words",
    "mcap": "benchmark.attacks.bags:Files",
    "metadata": "benchmark.attacks.bags:Metadata",
    "journal": "benchmark.attacks.bags:Journals",
}


def tell(kind: str, report: Report, seconds: float) -> str:
    """Return one line on an attack, and the examples of what went badly below it."""
    lines = [f"{kind}: {sum(report.counts.values())} cases in {seconds:.0f} s: {report.summary}; {report.bad} bad"]
    return "\n".join([*lines, *report.examples])


def main(argv: list[str] | None = None) -> int:
    """Run attacks, and return 1 where anything ended badly."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.attacks", description=__doc__)
    parser.add_argument("--kind", choices=tuple(KINDS), nargs="+", default=tuple(KINDS), help="default: all")
    parser.add_argument("--count", type=int, default=10_000, help="cases of each kind (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="what the cases are drawn from (default: 0)")
    parser.add_argument("--write", action="store_true", help="put what came of them into docs/results.md")
    arguments = parser.parse_args(argv)
    bad = 0
    for kind in arguments.kind:
        began = time.monotonic()
        report = attack(KINDS[kind], arguments.count, arguments.seed)
        print(tell(kind, report, time.monotonic() - began), flush=True)
        bad += report.bad
        if arguments.write:
            note(f"`{kind}`", arguments.count, arguments.seed, report.summary, report.bad)
    if bad:
        print(f"{bad} cases ended badly ({', '.join(BAD)})", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
