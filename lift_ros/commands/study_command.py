"""`lift study`: compute a grid of experiments, on processes or a Ray cluster, and show what is there."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lift_ros.configuration import Key, check_value
from lift_ros.console import fold, format_table, print_error
from lift_ros.errors import UserError

_LIST = "list"
_LOCAL = "local"
_COUNT = Key(int, low=1, high=1024)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift study`."""
    parser.add_argument("study", metavar="STUDY", help="name of a study, its YAML file, or `list` to list them")
    parser.add_argument("--quick", action="store_true", help="a few updates of a few cells; nothing is kept")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="SEED", help="seeds of data instead of the study's")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--processes", type=int, metavar="K", help="processes of this machine (default: 1)")
    where.add_argument(
        "--ray",
        nargs="?",
        const=_LOCAL,
        metavar="ADDRESS",
        help="a Ray cluster; without an address one of this machine",
    )
    parser.add_argument("--workers", type=int, default=2, help="workers of a local Ray (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("studies"), metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--show", action="store_true", help="compute nothing, write the page of what is there")
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="also write the tables between `<!-- begin study STUDY -->` and its end",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compute what is missing, write the page and print the tables; 1 where a cell failed."""
    if arguments.study == _LIST:
        return _list()
    for name in ("processes", "workers"):
        check_value(f"--{name}", getattr(arguments, name), _COUNT if name == "workers" else _optional(_COUNT))
    if arguments.quick and (arguments.results or arguments.show):
        raise UserError("--quick keeps nothing; leave --results and --show out")
    from lift_ros.studies.study import load_study

    study = load_study(arguments.study, quick=arguments.quick, seeds=arguments.seeds)
    if arguments.quick:
        with tempfile.TemporaryDirectory(prefix="lift_study_") as folder:
            return _run(arguments, study, Path(folder))
    return _run(arguments, study, arguments.out)


def _optional(key: Key) -> Key:
    return Key(key.kind, None, low=key.low, high=key.high, optional=True)


def _run(arguments: argparse.Namespace, study: object, folder: Path) -> int:
    from lift_ros.studies import page, running, tables
    from lift_ros.studies.store import Store
    from lift_ros.studies.study import Study

    assert isinstance(study, Study)
    store = Store(folder)
    failed = {}
    if not arguments.show:
        execute = running.processes(arguments.processes or 1)
        if arguments.ray is not None:
            execute = running.ray(arguments.ray, arguments.workers)
        try:
            ran = running.run_study(study, store, execute)
        finally:
            written = page.write_page(study, running.results(study, store), folder)
        failed = dict(ran.failed)
    else:
        written = page.write_page(study, running.results(study, store), folder)
    text = tables.page_text(study, running.results(study, store))
    print(text)
    if arguments.results is not None:
        page.write_section(arguments.results, f"study {study.name}", text)
    if not arguments.quick:
        print(f"\npage: {written}")
    for name, reason in failed.items():
        print_error("study", f"the cell {name} failed: {reason}")
    return 1 if failed else 0


def _list() -> int:
    """List the studies that come along."""
    from lift_ros.studies.study import describe_study, study_names

    rows = [[name, *describe_study(name)] for name in study_names()]
    print(format_table(["study", "what it is", "in the paper"], rows))
    print(fold("lift study NAME --quick tries one; without --quick it goes on where it was interrupted", ""))
    return 0
