"""`lift export`: runs as datasets of Minari or LeRobot or as a recording of Rerun, a model as ONNX."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from lift_ros.errors import UserError

MOST_FPS = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift export`."""
    parser.add_argument("source", type=Path, nargs="+", help="runs, or one model file (for onnx)")
    parser.add_argument("--to", choices=tuple(EXPORTS), required=True, help="format to write")
    parser.add_argument(
        "--out", type=Path, required=True, help="FOLDER/NAME of the dataset to write, or the .rrd or .onnx file"
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave out episodes that cannot be read")
    datasets = parser.add_argument_group("minari and lerobot")
    datasets.add_argument(
        "--observation",
        choices=("vector", "image", "both"),
        default="vector",
        help="what counts as observation; both: vector and image by name (default: vector)",
    )
    datasets.add_argument(
        "--drop-final-observation",
        action="store_true",
        help="minari: as many observations as actions, for d3rlpy's get_minari, which shifts episodes otherwise",
    )
    datasets.add_argument(
        "--fps", type=int, default=10, metavar="N", help="lerobot: frames per second that it is told (default: 10)"
    )


def _export_minari(arguments: argparse.Namespace) -> None:
    from lift_ros.bags.exporting.minari import DATASETS_VARIABLE, export_minari

    report = export_minari(
        arguments.source,
        arguments.out,
        kind=arguments.observation,
        drop_final=arguments.drop_final_observation,
        skip_bad=arguments.skip_bad,
    )
    print(f"{report.folder / report.dataset_id}: {report.episodes} episodes, {report.steps} steps")
    for reason, count in report.left_out.items():
        print(f"left out {count} {reason}")
    print(f"open it with {DATASETS_VARIABLE}={report.folder} and minari.load_dataset({report.dataset_id!r})")


def _export_lerobot(arguments: argparse.Namespace) -> None:
    from lift_ros.bags.exporting.lerobot import export_lerobot

    if not 1 <= arguments.fps <= MOST_FPS:
        raise UserError(f"--fps is {arguments.fps}; allowed: from 1 to {MOST_FPS}")
    report = export_lerobot(
        arguments.source,
        arguments.out,
        kind=arguments.observation,
        fps=arguments.fps,
        skip_bad=arguments.skip_bad,
    )
    print(f"{report.folder}: {report.episodes} episodes, {report.steps} steps")
    for reason, count in report.left_out.items():
        print(f"left out {count} {reason}")
    print(f"open it with LeRobotDataset('lift/{report.folder.name}', root={str(report.folder)!r})")


def _export_rerun(arguments: argparse.Namespace) -> None:
    from lift_ros.bags.exporting.rerun import export_rerun

    report = export_rerun(arguments.source, arguments.out, skip_bad=arguments.skip_bad)
    print(f"{arguments.out}: {report.episodes} episodes, {report.steps} steps")
    if report.without_steps:
        print(f"left out {report.without_steps} episodes without steps")
    print(f"open it with: rerun {arguments.out}")


def _export_onnx(arguments: argparse.Namespace) -> None:
    from lift_ros.training.onnx_export import export_onnx

    if len(arguments.source) != 1:
        raise UserError(f"--to onnx takes one model file, not {len(arguments.source)}")
    export_onnx(arguments.source[0], arguments.out)
    print(f"{arguments.out} written")


EXPORTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "minari": _export_minari,
    "lerobot": _export_lerobot,
    "rerun": _export_rerun,
    "onnx": _export_onnx,
}


def run(arguments: argparse.Namespace) -> int:
    """Write what was asked for."""
    EXPORTS[arguments.to](arguments)
    return 0
