"""`lift rig`: the first hour with a rig of one's own, without ROS: check what it does, move it by hand."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.configuration import nearest
from lift_ros.console import format_table, print_error, shown
from lift_ros.drivers.checkup import WAIT_SECONDS, AxisCheck, SightCheck, check_axis, check_sight
from lift_ros.drivers.motion import MotionSettings
from lift_ros.drivers.protocol import DriverFault
from lift_ros.drivers.rig import Rig
from lift_ros.drivers.worker import DeviceWorker
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.scenario import Scenario, load_scenario

CONNECTING_SECONDS = 60.0
SATURATED = 0.01  # share of values at the upper end from which a picture has lost something
MEASURED = """\
move: with the settle time; settles: moves on after "not busy"; scatter: deviation of arrivals from one side
backlash: arrivals from below less those from above, as far as the encoder sees it"""
SEEN = "in the picture: mean change of a pixel by the step, and between two pictures at rest"
JOG_HELP = "an axis and a way, such as `x 0.5` or `z -2`; `home`, `where`, `quit`"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift rig`."""
    deeds = parser.add_subparsers(dest="deed", metavar="check|jog", required=True)
    check = deeds.add_parser("check", help="show axes, limits and a picture; with --move measure how axes move")
    jog = deeds.add_parser("jog", help=f"move by hand: {JOG_HELP}")
    for deed in (check, jog):
        deed.add_argument("scenario", help="scenario file with a section rig, or a name")
        deed.add_argument("--home", action="store_true", help="home all axes first")
    check.add_argument("--move", action="store_true", help="move each axis a small step and back, and measure")
    check.add_argument(
        "--step", type=float, help="length of that step, in each axis' unit (default: 1%% of its travel)"
    )
    check.add_argument("--repeats", type=int, default=3, metavar="N", help="how often (default: 3)")
    check.add_argument("--picture", type=Path, metavar="FILE.png", help="write what the camera sees there")
    jog.add_argument(
        "moves", nargs="*", metavar="AXIS WAY", help="moves to make, or `home`; none: they are read from the terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; axes are stopped and released whatever happens."""
    scenario = load_scenario(arguments.scenario)
    if not scenario.rig:
        raise UserError(f"scenario {scenario.name} has no section rig, which names drivers; see docs/drivers.md")
    rig = scenario.make_rig()
    with connected(rig) as worker:
        if arguments.home:
            print("homing …", flush=True)
            worker.home().result(WAIT_SECONDS)
        return _check(arguments, scenario, rig, worker) if arguments.deed == "check" else _jog(arguments, rig, worker)


@contextlib.contextmanager
def connected(rig: Rig) -> Iterator[DeviceWorker]:
    """Yield the rig's devices, connected; they are stopped and released in the end."""
    worker = rig.make_worker()
    try:
        worker.connect().result(CONNECTING_SECONDS)
        yield worker
    except TimeoutError as error:
        raise DriverFault("a device did not answer in time; check its power and cable") from error
    finally:
        worker.close()


def _check(arguments: argparse.Namespace, scenario: Scenario, rig: Rig, worker: DeviceWorker) -> int:
    if arguments.repeats < 1:
        raise UserError(f"--repeats is {arguments.repeats}; allowed: 1 or more")
    position, picture = worker.look(rig.camera_seconds).result(WAIT_SECONDS)
    print(_axes_table(rig.motion, position))
    if picture is not None:
        print(_tell_picture(picture, scenario))
        if arguments.picture is not None:
            _write(arguments.picture, picture)
    elif arguments.picture is not None:
        raise UserError("--picture is given, but the scenario's rig has no camera; add a section rig.camera")
    if arguments.move:
        _measure(arguments, rig, worker, position)
    else:
        print("how axes move was not measured; with --move each goes a small step and back")
    return 0


def _measure(arguments: argparse.Namespace, rig: Rig, worker: DeviceWorker, position: FloatArray) -> None:
    checks, sights = [], []
    for i, axis in enumerate(rig.motion.axes):
        print(f"moving {axis.name} …", flush=True)
        check = check_axis(worker, rig.motion, i, arguments.repeats, arguments.step)
        checks.append(check)
        if rig.camera:
            way = check.step if position[i] + check.step <= axis.high else -check.step
            sights.append(check_sight(worker, i, way, rig.camera_seconds))
    print(_measured_table(checks, sights))
    print(MEASURED, *([SEEN] if sights else []), *_unseen(checks, sights), _suggestions(checks, rig.motion), sep="\n")


def _axes_table(settings: MotionSettings, position: FloatArray) -> str:
    rows = [
        (axis.name, axis.unit, shown(axis.low), shown(axis.high), shown(value), shown(tolerance))
        for axis, value, tolerance in zip(settings.axes, position, settings.tolerance, strict=True)
    ]
    return format_table(("axis", "unit", "low", "high", "is at", "tolerance"), rows)


def _measured_table(checks: list[AxisCheck], sights: list[SightCheck]) -> str:
    header = ("axis", "step", "move s", "settles s", "scatter", "backlash", "off target")
    rows = [
        (
            check.axis.name,
            check.axis.show(check.step),
            shown(check.move_seconds),
            shown(check.settle_seconds),
            check.axis.show(check.repeatability),
            check.axis.show(check.hysteresis),
            check.axis.show(check.error),
        )
        for check in checks
    ]
    if not sights:
        return format_table(header, rows)
    seen = [(f"{shown(sight.change)} ({shown(sight.noise)})",) for sight in sights]
    return format_table((*header, "in the picture (at rest)"), [a + b for a, b in zip(rows, seen, strict=True)])


def _unseen(checks: list[AxisCheck], sights: list[SightCheck]) -> Iterator[str]:
    for check, sight in zip(checks, sights, strict=False):  # without a camera there are no sights
        if not sight.visible:
            yield (
                f"the camera does not see axis {check.axis.name} move by {check.axis.show(check.step)}, so a policy "
                "that sees pictures cannot tell it; try a longer --step, or look at light, focus and exposure"
            )


def _suggestions(checks: list[AxisCheck], settings: MotionSettings) -> str:
    suggested: dict[str, float] = {}
    for i, check in enumerate(checks):
        for name, value in check.suggestions(settings, i).items():
            suggested[name] = max(value, suggested.get(name, value))
    if not suggested:
        return "the scenario's settle time, tolerances and backlash fit what was measured"
    lines = [f"  {name}: {value:g}" for name, value in suggested.items()]
    return "\n".join(["suggested for rig.axes of the scenario:", *lines])


def _tell_picture(picture: Picture, scenario: Scenario) -> str:
    found, wanted = PictureFormat.of(picture), scenario.limits.picture
    told = [f"picture: {found}, values {picture.min():g} to {picture.max():g}"]
    if found != wanted:
        told.append(f"the scenario says {wanted}: set plant.picture_height, picture_width and picture_encoding to it")
    if picture.min() == picture.max():
        told.append("it shows nothing: look for light, shutter and cap")
    elif picture.dtype.kind == "u" and (full := float((picture == np.iinfo(picture.dtype).max).mean())) > SATURATED:
        told.append(f"{full:.0%} of its values are as high as can be: shorten the exposure")
    return "; ".join(told)


def _write(path: Path, picture: Picture) -> None:
    import cv2  # only who wants a file needs it

    channels = picture if picture.ndim == 2 else picture[..., ::-1]
    if not cv2.imwrite(str(path), np.ascontiguousarray(channels)):
        raise UserError(f"--picture {path}: OpenCV cannot write it; allowed: a name that ends in .png")
    print(f"written to {path}")


def _jog(arguments: argparse.Namespace, rig: Rig, worker: DeviceWorker) -> int:
    words = arguments.moves
    if not words:
        return _jog_by_terminal(rig, worker)
    if words[0] == "home":
        worker.home().result(WAIT_SECONDS)
        words = words[1:]
    if len(words) % 2:
        raise UserError(f"moves are {' '.join(words)}; allowed: pairs of an axis and a way, such as x 0.5")
    ways = [_way(rig.motion, *words[i : i + 2]) for i in range(0, len(words), 2)]
    for way in ways:
        worker.move_by(way).result(WAIT_SECONDS)
    print(_where(rig, worker))
    return 0


def _jog_by_terminal(rig: Rig, worker: DeviceWorker) -> int:
    print(f"{JOG_HELP}; Ctrl-C stops a move\n{_axes_table(rig.motion, worker.position().result(WAIT_SECONDS))}")
    deeds: dict[str, Callable[[], object]] = {"home": lambda: worker.home().result(WAIT_SECONDS), "where": lambda: None}
    for line in _typed():
        words = line.split()
        if words == ["quit"]:
            break
        try:
            if len(words) == 1 and words[0] in deeds:
                deeds[words[0]]()
            elif len(words) == 2:
                worker.move_by(_way(rig.motion, *words)).result(WAIT_SECONDS)
            elif words:
                raise UserError(f"{line.strip()!r} is not understood; allowed: {JOG_HELP}")
        except UserError as error:  # a person at the rig tries again
            print_error("rig", error)
            worker.reset()
        except KeyboardInterrupt:
            worker.stop()
            print("\nstopped")
        print(_where(rig, worker), flush=True)
    return 0


def _typed() -> Iterator[str]:
    """Yield lines; a person gets a prompt and can edit and repeat what was typed."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with contextlib.suppress(ImportError):  # not on every system
        import readline  # noqa: F401 - input() uses it
    with contextlib.suppress(EOFError):
        while True:
            yield input("jog> ")
    print()


def _way(settings: MotionSettings, name: str, length: str) -> FloatArray:
    names = [axis.name for axis in settings.axes]
    if name not in names:
        raise UserError(f"there is no axis {name!r}; {nearest(name, names)}")
    try:
        value = float(length)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise UserError(f"the way of axis {name} is {length!r}; allowed: a finite number, in {_unit(settings, name)}")
    return np.array([value if axis == name else 0.0 for axis in names])


def _unit(settings: MotionSettings, name: str) -> str:
    return next(axis.unit for axis in settings.axes if axis.name == name)


def _where(rig: Rig, worker: DeviceWorker) -> str:
    position = worker.position().result(WAIT_SECONDS)
    return "  ".join(f"{axis.name} {axis.show(value)}" for axis, value in zip(rig.motion.axes, position, strict=True))
