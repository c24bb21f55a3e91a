"""The page of the results: tables and the plot, made from the stored cells alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.cells import (
    CONTEXTS,
    DRAWS,
    FEWER_EPISODES,
    MAIN,
    METHODS,
    SCENARIOS,
    SHIPPED,
    STEPS,
    VARIATIONS,
    YARDSTICKS,
    default_draw,
    make_scenario,
)
from benchmark.timing import markdown_table
from lift_ros.evaluation.convergence import DIRECT, LOGGING_POLICY, SECANT
from lift_ros.scenario import load_scenario

Group = list[dict[str, Any]]  # cells that differ in their seeds alone
Groups = dict[tuple[str, str, str], Group]  # by scenario, method and draw
_HEADER = ("scenario", "", "draw", "seeds", "lowest", "mean", "highest", "steps", f"/ {DIRECT}", f"/ {SECANT}")
_COLOURS = {"CQL-SC": "#d62728", "clone": "#1f77b4", LOGGING_POLICY: "#7f7f7f", DIRECT: "#2ca02c", SECANT: "#bcbd22"}

_HEAD = f"""
Success is the share of {CONTEXTS} fresh contexts in which the policy arrives within {STEPS} steps (the logging policy:
within the plant's limit). A seed is one set of recorded episodes and one training on it, with the preset `fast` and
nothing chosen per scenario but λ and the step of the walk. Seeds and contexts are the same for all, and none of them
was used for choosing. `steps` is the median number of steps to θ over all contexts of all seeds, ∞ where most did not
arrive; beside it stands its ratio to that of two yardsticks.

- **CQL** learns from the recorded transitions, **CQL-SC** from shortcuts; **clone** has the same actor and imitates
  the best shortcuts without any critic. **LIFT** and **LIFT-SC** learn as CQL and CQL-SC do, but only the first
  episodes are the logging policy's: an augmentor, CQL-SC trained on those, takes part in the others.
- The **draw** says where a training's transitions or shortcuts start. `transitions`: any recorded step is as likely as
  any other. `episodes`: an episode is drawn first, then one of its steps, so that short episodes count as much as long
  ones. The first tables use the draw of the preset, the one after them both.
- **{DIRECT}** takes the largest step towards the goal, **{SECANT}** learns the map from action to movement on the way
  (Broyden's update), **optimal** knows the context. The first two need to observe the displacement, and no data at
  all: [do you need this?](do-you-need-this.md)
"""

_BOTH_DRAWS = """
All methods with both draws: mean success [lowest, highest] over the seeds, and median steps. LIFT without shortcuts
lives from drawing episodes first: the short, good ones are a small share of all transitions. Up to version 0.1.0 this
page showed LIFT with `episodes` and CQL with `transitions` without saying so.
"""


def report(cells: Sequence[dict[str, Any]]) -> str:
    """Return the section of docs/results.md."""
    groups = _grouped(cells)
    episodes = " ".join(
        f"Of {name} {count} episodes are recorded, not the scenario's {load_scenario(name).collection.episodes}."
        for name, count in FEWER_EPISODES.items()
    )
    parts = [
        _HEAD.strip(),
        episodes,
        _seeds_table("Shipped scenarios:", SHIPPED, groups),
        _seeds_table("Scenarios that nobody tuned for:", tuple(VARIATIONS), groups),
        _draws_table(groups),
        _lift_table(groups),
        "![median distance over steps](images/results.png)",
    ]
    return "\n\n".join(part for part in parts if part)


def _grouped(cells: Sequence[dict[str, Any]]) -> Groups:
    groups: Groups = {}
    for cell in cells:
        groups.setdefault((cell["scenario"], cell["method"], cell["draw"]), []).append(cell)
    return groups


def _seeds_table(title: str, scenarios: Sequence[str], groups: Groups) -> str:
    rows = []
    for scenario in scenarios:
        references = [_steps(groups.get((scenario, name, ""), [])) for name in (DIRECT, SECANT)]
        kinds = [(name, default_draw(scenario)) for name in MAIN] + [(name, "") for name in YARDSTICKS]
        for method, own in kinds:
            group = groups.get((scenario, method, own), [])
            if group:
                name = f"**{method}**" if method in MAIN else method
                ratios = (_ratio(_steps(group), other) for other in references)
                rows.append((scenario, name, own, *_spread(group), _number(_steps(group)), *ratios))
    return f"{title}\n\n{markdown_table(_HEADER, rows)}" if rows else ""


def _spread(group: Group) -> tuple[str, str, str, str]:
    """Return the number of seeds and the lowest, mean and highest success; yardsticks have no seed."""
    success = [cell["success"] for cell in group]
    if group[0]["method"] in YARDSTICKS:
        return "", "", f"{success[0]:.3f}", ""
    return str(len(group)), f"{min(success):.3f}", f"{np.mean(success):.3f}", f"{max(success):.3f}"


def _draws_table(groups: Groups) -> str:
    rows = []
    for scenario in SCENARIOS:
        for method in METHODS:
            found = [groups.get((scenario, method, draw), []) for draw in DRAWS]
            if any(found):
                rows.append((scenario, method, *(text for group in found for text in _brief(group))))
    header = ("scenario", "method", *(text for draw in DRAWS for text in (f"draw: {draw}", "seeds", "steps")))
    return f"{_BOTH_DRAWS.strip()}\n\n{markdown_table(header, rows)}" if rows else ""


def _brief(group: Group) -> tuple[str, str, str]:
    if not group:
        return "", "", ""
    success = [cell["success"] for cell in group]
    return f"{np.mean(success):.2f} [{min(success):.2f}, {max(success):.2f}]", str(len(group)), _number(_steps(group))


def _lift_table(groups: Groups) -> str:
    rows = []
    for scenario in SCENARIOS:
        cells = groups.get((scenario, "LIFT-SC", default_draw(scenario)), [])
        collections = [cell["collection"] for cell in cells if cell["collection"]["augmented_steps_per_episode"]]
        if collections:
            plain, lifted = (
                float(np.mean([entry[f"{kind}_steps_per_episode"] for entry in collections]))
                for kind in ("plain", "augmented")
            )
            rows.append((scenario, len(collections), f"{plain:.0f}", f"{lifted:.1f}", f"{plain / lifted:.1f}"))
    header = ("scenario", "seeds", "steps per episode, plain", "steps per episode, LIFT", "ratio")
    return "Collecting with LIFT against plain collection:\n\n" + markdown_table(header, rows) if rows else ""


def _steps(group: Group) -> float:
    """Return the median steps to arrive over all contexts of all seeds; infinite where most did not."""
    arrivals = [np.inf if value is None else value for cell in group for value in cell["arrivals"]]
    return float(np.quantile(arrivals, 0.5, method="higher")) if arrivals else np.nan


def _number(steps: float) -> str:
    return "∞" if np.isinf(steps) else f"{steps:.0f}"


def _ratio(steps: float, other: float) -> str:
    return f"{steps / other:.2f}" if np.isfinite(steps) and np.isfinite(other) else "–"


def draw(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the plot: the median distance over steps, a line per seed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scenarios = [name for name in SCENARIOS if any(cell["scenario"] == name for cell in cells)]
    columns = min(5, len(scenarios))
    lines = -(-len(scenarios) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.5 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    for index, scenario in enumerate(scenarios):
        axes = figure.add_subplot(lines, columns, index + 1)
        for method, colour in _COLOURS.items():
            own = default_draw(scenario) if method in MAIN else ""
            chosen = [
                cell for cell in cells if (cell["scenario"], cell["method"], cell["draw"]) == (scenario, method, own)
            ]
            for number, cell in enumerate(chosen):
                label = method if number == 0 else None
                axes.plot(cell["median_distances"], color=colour, label=label, linewidth=1.0 if own else 1.5, alpha=0.7)
        threshold = make_scenario(scenario).threshold
        axes.axhline(threshold, color="black", linewidth=0.7, linestyle=":")
        axes.set_yscale("log")
        axes.set_ylim(bottom=threshold / 10)  # what is closer has arrived; secant goes on to the last digit
        axes.set_title(scenario, fontsize=9)
        axes.tick_params(labelsize=7)
        if index % columns == 0:
            axes.set_ylabel("distance to the goal", fontsize=8)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(_COLOURS), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(str(path), dpi=100)
