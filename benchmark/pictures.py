"""Learning from pictures and opaque sensors: all methods on all such scenarios, cell by cell."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.cells import (
    CONTEXTS,
    OF_PICTURES,
    STEPS,
    Effort,
    Recordings,
    Variation,
    trained,
    vary,
    with_effort,
)
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Mode, Outcome
from lift_ros.evaluation.convergence import LOGGING_POLICY, Convergence, context_seeds, converge
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.scenario import Scenario, load_scenario
from lift_ros.seeds import derive_seed
from lift_ros.training import preset

STORE = RESULTS.with_name("results-pictures.json")
SEEDS = (2000, 2001, 2002)
SCENARIOS = (
    "sensors",
    "light-tunnel",
    "lens",
    "lens, drawn by relign",
    "fetch-reach-pictures",
    "fetch-reach-two-views",
    "fetch-touch-and-place-pictures",
)
RELIGN = "lens, drawn by relign"
VARIATIONS = {  # a ray tracer takes 50 ms for such a picture, and 16 rays per pixel leave it noisy
    RELIGN: Variation("lens", {"renderer": "relign", "spec": "l2", "picture_size": 48, "samples": 16}, episodes=60)
}
# Where drawing a picture takes long.
FEWER_CONTEXTS = {RELIGN: 30, **{name: 50 for name in SCENARIOS if name.startswith("fetch")}}
_PLAIN = {"strategy": "none", "anchor": 0.0}
METHODS: Mapping[str, tuple[bool, Mapping[str, Any]]] = {  # on episodes collected with LIFT, and what differs
    "anchored CQL-SC": (False, {}),  # the default; the others on the same episodes see with its eyes
    "CQL": (False, _PLAIN),
    "CQL-SC": (False, {"anchor": 0.0}),
    "clone-SC": (False, {"algorithm": "clone"}),
    "LIFT-SC": (True, {}),
    "LIFT": (True, _PLAIN),
}
FEWER = "anchored, first episodes"  # what the augmentor of LIFT is: the default, trained on fewer episodes
_CAME_LATER = (("composed", None), ("composed", 0.0))  # nothing said, as before there was such an option
ASSISTED = ("anchored CQL-SC", "LIFT-SC")
ASSIST_EPISODES = 50


@dataclass(frozen=True)
class Group:
    """The cells that share recorded episodes."""

    scenario: str
    seed: int

    def name(self, method: str) -> str:
        """Return the key of a cell in the store."""
        return f"{self.scenario} | {method} | {self.seed}"


def main(arguments: argparse.Namespace) -> int:
    """Compute the cells that are missing, or outdated, and write the section of docs/results.md."""
    effort = Effort(contexts=3, updates=3, episodes=4) if arguments.quick else Effort()
    cells = {} if arguments.quick else _stored()
    groups = [Group(name, seed) for seed in (SEEDS[:1] if arguments.quick else SEEDS) for name in SCENARIOS]
    wanted = [group for group in groups if any(_is_due(cells, group, method) for method in _rows())]
    if find_spec("relign") is None:
        print(f"{RELIGN} is left out: relign is not installed (extra `optics`)", flush=True)
        wanted = [group for group in wanted if group.scenario != RELIGN]
    with ProcessPoolExecutor(2) as pool:
        futures = [pool.submit(compute, group, effort) for group in wanted]
        for future in as_completed(futures):
            cells |= future.result()
            if not arguments.quick:
                _store(cells)
            print(f"{len(cells)} cells, {sum(each.done() for each in futures)} of {len(futures)} groups", flush=True)
    text = report(cells)
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "pictures", text)
    return 0


def _scenario(name: str) -> Scenario:
    return vary(name, VARIATIONS[name]) if name in VARIATIONS else load_scenario(name)


def _rows() -> Iterator[str]:
    yield LOGGING_POLICY
    yield FEWER
    yield from METHODS


def compute(group: Group, effort: Effort) -> dict[str, Any]:
    """Record, train by all methods and evaluate; return the cells by name."""
    scenario = with_effort(_scenario(group.scenario), effort)
    contexts = min(effort.contexts, FEWER_CONTEXTS.get(group.scenario, CONTEXTS))
    seeds = context_seeds(derive_seed(0, "pictures"), contexts)
    patience = scenario.limits.step_limit
    routine = converge(scenario, scenario.make_logging_policy(), seeds, steps=STEPS, patience=patience)
    cells = {group.name(LOGGING_POLICY): _outcome(group, LOGGING_POLICY, routine)}
    folder = Path(tempfile.mkdtemp(prefix="lift_pictures_"))
    try:
        recordings = Recordings(scenario, group.seed, folder, effort)
        policy, seconds = recordings.augmentor()
        cells[group.name(FEWER)] = _outcome(group, FEWER, converge(scenario, policy, seeds, steps=STEPS), seconds)
        eyes: LearnedPolicy | None = None
        for method, (lifted, changes) in METHODS.items():
            recorded = recordings.load(lifted)
            options = preset("fast", scenario, seed=group.seed, **changes)
            policy, seconds = trained(recorded, scenario, options, effort, eyes if changes else None)
            if not changes and scenario.model_sight.image:
                eyes = policy
            cell = _outcome(group, method, converge(scenario, policy, seeds, steps=STEPS), seconds)
            cell["steps_per_recorded_episode"] = round(float(np.mean(np.diff(recorded.arrays.offsets))), 1)
            if method in ASSISTED:
                cell |= _assisted(scenario, policy, group.seed, effort)
            cells[group.name(method)] = cell
    finally:
        shutil.rmtree(folder)
    return cells


def _outcome(group: Group, method: str, reached: Convergence, seconds: float | None = None) -> dict[str, Any]:
    return {
        "settings": fingerprint(group, method),
        **({} if seconds is None else {"training_cpu_seconds": round(seconds, 1)}),
        "success": reached.success,
        "steps": [None if np.isnan(value) else int(value) for value in reached.arrivals],
        "distance": {str(step): round(reached.distance_quartiles(step)[1], 4) for step in (5, 10, 30)},
    }


def _assisted(scenario: Scenario, policy: LearnedPolicy, seed: int, effort: Effort) -> dict[str, Any]:
    """Return how mode assist does: the model acts until it stalls, then the routine finishes."""
    episodes = collect(
        scenario,
        augmentor=policy,
        episodes=min(ASSIST_EPISODES, effort.contexts),
        seed=derive_seed(seed, "assist"),
        mode=Mode.ASSIST,
        progress=False,
    )
    arrived = float(np.mean([episode.outcome is Outcome.REACHED for episode in episodes]))
    return {"assist": arrived, "assist_steps": float(np.mean([len(episode.steps) for episode in episodes]))}


def fingerprint(group: Group, method: str) -> str:
    """Return a hash of all settings that a cell depends on: a stored one with another hash is outdated."""
    scenario = _scenario(group.scenario)
    described = scenario.as_dict()
    described["training"] = {key: value for key, value in described["training"].items() if _is_said(key, value)}
    settings: list[Any] = [described, STEPS, FEWER_CONTEXTS.get(group.scenario, CONTEXTS)]
    if method != LOGGING_POLICY:
        lifted, changes = METHODS.get(method, (False, {}))
        chosen = preset("fast", scenario, seed=group.seed, **changes).as_dict()
        unused = () if scenario.model_sight.image else OF_PICTURES
        said = {name: value for name, value in chosen.items() if name not in unused and _is_said(name, value)}
        settings += [lifted, said]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _is_said(name: str, value: Any) -> bool:
    return (name, value) not in _CAME_LATER


def _is_due(cells: Mapping[str, Any], group: Group, method: str) -> bool:
    cell = cells.get(group.name(method))
    return cell is None or cell["settings"] != fingerprint(group, method)


def _stored() -> dict[str, Any]:
    cells: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    return cells


def _store(cells: Mapping[str, Any]) -> None:
    rows = [f"{json.dumps(name)}: {json.dumps(cells[name])}" for name in sorted(cells)]
    STORE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


_HEAD = f"""
The routine sees the offset to the goal, the model only the picture, or the readings. Success is the share of fresh
contexts ({CONTEXTS}; Fetch 50, relign 30) in which the policy arrives within {STEPS} steps (the
routine: within the plant's limit), lowest and highest of the seeds beside the mean; a seed is one set of recorded
episodes and one training on it. `steps` is the median over the contexts of all seeds, ∞ where most did not arrive;
distances are medians after 5, 10 and 30 steps, in units of θ. `direct` and `secant` cannot be run here: nobody who sees
a picture knows the offset. **CQL-SC** learns from shortcuts without an anchor, **anchored CQL-SC** is the default;
**LIFT** and **LIFT-SC** learn from as many episodes, of which the later ones were collected with the augmentor, which
is listed as "{FEWER}": it learned from the first half, for Fetch reach from 100 trajectories, for
touch-and-place from 200. Methods that learn from the same episodes see with the same eyes: the encoder is taught once.
`assist` is the share of {ASSIST_EPISODES} episodes in mode assist that arrived, and their mean steps. `cpu` is the
processor time of one training in seconds: from a recorded run to a policy it takes three minutes at most.

What the light tunnel's policies miss are contexts in which one polarizer stands at its end: the light depends on the
difference of both angles, no picture shows the end, and half of each action is lost. What the policy of Fetch with one
view misses (seed 1, 100 contexts, 14 missed, which chose nothing): nine times it stays 1 to 7 θ beside the goal, which
one camera shows to 15 mm along its axis where θ is 20 mm, and five times it runs away.
"""


def report(cells: Mapping[str, Any]) -> str:
    """Return the section."""
    rows = []
    for scenario in SCENARIOS:
        for method in _rows():
            found = [cell for name, cell in cells.items() if name.startswith(f"{scenario} | {method} |")]
            if found:
                rows.append(_row(scenario, method, found))
    header = ("scenario", "", "seeds", "success", "steps", "at 5", "at 10", "at 30", "assist", "cpu")
    missing = [
        f"{scenario} ({', '.join(str(seed) for seed in seeds)})"
        for scenario in SCENARIOS
        if (seeds := [seed for seed in SEEDS if any(Group(scenario, seed).name(row) not in cells for row in _rows())])
    ]
    end = f"\n\nStill to be run, with these seeds: {'; '.join(missing)}." if missing else ""
    return f"{_HEAD.strip()}\n\n{markdown_table(header, rows)}{end}"


def _row(scenario: str, method: str, cells: Sequence[Mapping[str, Any]]) -> list[str]:
    successes = [cell["success"] for cell in cells]
    steps = np.median([np.inf if step is None else step for cell in cells for step in cell["steps"]])
    threshold = _scenario(scenario).threshold
    distances = [f"{np.mean([cell['distance'][at] for cell in cells]) / threshold:.1f}" for at in ("5", "10", "30")]
    assist = "–"
    if "assist" in cells[0]:
        assist = f"{np.mean([cell['assist'] for cell in cells]):.2f}, {np.mean([c['assist_steps'] for c in cells]):.0f}"
    seconds = [cell["training_cpu_seconds"] for cell in cells if "training_cpu_seconds" in cell]
    return [
        scenario,
        method,
        str(len(cells)),
        f"{np.mean(successes):.2f} [{min(successes):.2f}, {max(successes):.2f}]",
        "∞" if np.isinf(steps) else f"{steps:.0f}",
        *distances,
        assist,
        f"{np.mean(seconds):.0f}" if seconds else "–",
    ]
