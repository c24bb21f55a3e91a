"""Attacks with documents that people write: scenarios, mappings of `lift import`, and words of the command line."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmark.attacks.damage import damaged_document, nasty
from lift_ros.bags.importing.mapping import load_mapping
from lift_ros.bags.writer import RunWriter
from lift_ros.cli import main
from lift_ros.collection.loop import collect
from lift_ros.errors import UserError
from lift_ros.policies.loading import is_routine
from lift_ros.scenario import config_folder, load_scenario, scenario_names

_SIMULATED_ON_PAPER = "positioning"
_STEPS = 3
_MAPPING = {
    "observation": [{"topic": "/pose", "fields": ["point.x", "point.y"]}, {"topic": "/force", "field": "data"}],
    "position": {"topic": "/pose", "fields": ["point.x", "point.y"]},
    "action": {"topic": "/move", "field": "delta[0:2]", "meaning": "increment"},
    "reward": "distance_to_goal",
    "image": {"topic": "/camera"},
    "time": {"stamp": "header", "rate": 10.0, "match": "nearest", "tolerance": 0.1, "skip_still": 0.0},
    "episodes": {"start": {"topic": "/move", "field": "phase", "equals": "run"}, "end": {"service": "/home"}, "gap": 5},
    "goal": {"within": 0.1, "position": [0, 0]},
}


class Scenarios:
    """Damaged scenario files; one that is accepted must make a plant and a policy whose numbers are finite."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "scenario.yaml"
        self._trees = [yaml.safe_load((config_folder() / f"{name}.yaml").read_text()) for name in scenario_names()]
        hardware = {"kind": "hardware", "observation_size": 3, "action_size": 2, "action_radius": 0.1, "threshold": 0.1}
        hardware |= {"workspace_low": [-1, -1], "workspace_high": [1, 1]}
        self._trees.append({"plant": hardware, "logging_policy": {"name": "my_rig.routine:Walk"}})

    def case(self, rng: np.random.Generator) -> bool:
        """Load one, and begin an episode where that needs no simulator of physics."""
        self._path.write_bytes(damaged_document(self._trees[int(rng.integers(len(self._trees)))], rng))
        scenario = load_scenario(self._path)
        scenario.as_dict()
        if scenario.plant.kind != _SIMULATED_ON_PAPER or is_routine(scenario.logging_policy.name):
            return bool(np.isfinite(scenario.action_radius))
        problem, policy = scenario.make_problem(), scenario.make_logging_policy()
        observed = problem.reset(0)
        policy.reset()
        good = True
        for _ in range(_STEPS):
            observed = problem.step(policy.act(observed.values))
            good = good and bool(np.isfinite(observed.values).all())
        return good


class Mappings:
    """Damaged mapping files; one that is accepted must name topics."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "mapping.yaml"

    def case(self, rng: np.random.Generator) -> bool:
        """Load one."""
        self._path.write_bytes(damaged_document(_MAPPING, rng))
        return all(isinstance(topic, str) for topic in load_mapping(self._path).topics())


# Commands that end soon, with what they are usually given; one word of each is replaced. Those that would start a graph
# are wrong twice: it must not come up.
_COMMANDS = (
    "collect --scenario po-none-d2 --out new --episodes 1 --seed 0 --processes 1 --quiet",
    "config po-blend-d2 --episodes 3 --seed 1 --option hidden=8x8 --option batch_size=16",
    "config run --updates 3",
    "scenarios folder",
    "inspect run --bins 4",
    "evaluate policy.safetensors --scenario po-none-d2 --contexts 1 --steps 3 --seeds 0",
    "report run --out page.html",
    "export run --to minari --out data/set",
    "import run --mapping mapping.yaml --out imported",
    "import run --topics",
    "run --scenario po-none-d2 --out graph --episodes -1 --train-after -1 --set arbiter.p=0.5",
    "run --scenario po-none-d2 --out graph --namespace 9 --p 2 --topics /force",
    "replay nothing --rate 1 --prefix /x",
    "train nothing --out model.safetensors --updates 1 --option gamma=0.9",
)
_TRAINING = "train run --out first.safetensors --updates 1"  # not attacked, since it takes long, but made by accident


class Words:
    """Nasty words on the command line."""

    def __init__(self, folder: Path) -> None:
        (folder / "folder").mkdir()
        (folder / "mapping.yaml").write_text(yaml.safe_dump(_MAPPING))
        scenario = load_scenario("po-none-d2")
        few = {"episodes": 2, "seed": 0, "p": 0.0, "progress": False}
        episodes = collect(scenario.make_problem, scenario.make_logging_policy, None, **few)
        with RunWriter(folder / "run", {"seed": 0, "parameters": scenario.as_dict()}, sync=False) as writer:
            for episode in episodes:
                writer.write_episode(episode)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for command in (*_COMMANDS, _TRAINING):
                _status(command.split())  # what is imported now takes no case's time

    def case(self, rng: np.random.Generator) -> bool:
        """Run a command; its status must tell of what it refused, and it ends by itself."""
        words = _COMMANDS[int(rng.integers(len(_COMMANDS)))].split()
        place = int(rng.integers(1, len(words)))
        name, equals, _ = words[place].partition("=")
        words[place] = f"{name}{equals}{_word(rng)}" if equals else _word(rng)
        status = _status(words)
        if status == UserError.exit_status:
            raise UserError("refused")
        return status in (0, 1)


def _status(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as end:  # of argparse
        return end.code


def _word(rng: np.random.Generator) -> str:
    value: Any = nasty(rng)
    return value if isinstance(value, str) else f"{value}"[:5000]
