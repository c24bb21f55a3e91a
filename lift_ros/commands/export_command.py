"""`lift export`: runs as a Minari dataset, a model as ONNX."""

from __future__ import annotations

import argparse
from pathlib import Path

from lift_ros.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift export`."""
    parser.add_argument("source", type=Path, nargs="+", help="runs (for minari), or one model file (for onnx)")
    parser.add_argument("--to", choices=("minari", "onnx"), required=True, help="format to write")
    parser.add_argument(
        "--out", type=Path, required=True, help="FOLDER/NAME of the Minari dataset, or the .onnx file to write"
    )
    minari = parser.add_argument_group("minari")
    minari.add_argument(
        "--observation",
        choices=("vector", "image", "both"),
        default="vector",
        help="what counts as observation; both: a dictionary of vector and image (default: vector)",
    )
    minari.add_argument(
        "--drop-final-observation",
        action="store_true",
        help="as many observations as actions: for d3rlpy's get_minari, which shifts episodes otherwise",
    )
    minari.add_argument("--skip-bad", action="store_true", help="leave out episodes that cannot be read")


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


def _export_onnx(arguments: argparse.Namespace) -> None:
    from lift_ros.training.onnx_export import export_onnx

    if len(arguments.source) != 1:
        raise UserError(f"--to onnx takes one model file, not {len(arguments.source)}")
    export_onnx(arguments.source[0], arguments.out)
    print(f"{arguments.out} written")


def run(arguments: argparse.Namespace) -> int:
    """Write what was asked for."""
    export = _export_minari if arguments.to == "minari" else _export_onnx
    export(arguments)
    return 0
