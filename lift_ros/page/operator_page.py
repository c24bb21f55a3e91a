"""The operator's page: what a run does at this moment, and the buttons and sliders that change it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from nicegui import app, ui

from lift_ros.collection.records import Source
from lift_ros.errors import UserError
from lift_ros.graph import channels
from lift_ros.page import charts
from lift_ros.page.layout import add_look, add_theme_button, card, html_table, redraw
from lift_ros.page.live import Controls, EpisodeRow, LiveRun
from lift_ros.page.pictures import data_url
from lift_ros.page.rows import episode_table, table_row

PICTURE_SECONDS = 0.1
CHART_SECONDS = 0.4
# A loop that is quicker than eyes is drawn less often: what a browser beside it works, the loop misses.
QUICK_RATE, QUICK_PAUSE = 300.0, 1.0  # [steps/s], [s] at least between two drawings
TABLE_SECONDS = 2.0
ROWS_SHOWN = 100
STOPPED, FAULT, PAUSED, WAITING = "EMERGENCY_STOP", "FAULT", "PAUSED", "WAITING_FOR_START"
MODES = {
    "collect": "The routine acts, and the augmentor now and then.",
    "shadow": "The augmentor is asked, and the routine acts.",
    "evaluate": "The augmentor acts alone.",
    "assist": "The augmentor acts until it stalls, then the routine finishes.",
}
_NEEDED = {  # by mode: who must be in the graph
    "collect": ("logging_policy",),
    "shadow": ("logging_policy", "augmentor"),
    "evaluate": ("augmentor",),
    "assist": ("logging_policy", "augmentor"),
}


def plant_of(run: LiveRun) -> str:
    """Return the name of the plant's node, which has none of the graph's own roles; empty where none was heard."""
    return next((node for node in run.reports if node not in channels.ROLES), "")


def latencies_of(run: LiveRun) -> list[tuple[str, str, str]]:
    """Return who answered the arbiter how quickly: median and 99 % quantile in milliseconds."""
    report = run.report("arbiter")
    values = {} if report is None else report.values
    ending = " p50 [ms]"
    names = [key.removesuffix(ending) for key in values if key.endswith(ending)]
    return [(name, values[f"{name}{ending}"], values.get(f"{name} p99 [ms]", "")) for name in names]


def state_of(run: LiveRun) -> tuple[str, str]:
    """Return in one word what the graph does, and how serious it is: good, warn or bad."""
    if run.ended:
        return "ended", "warn"
    if run.value(plant_of(run), "status") in (STOPPED, FAULT):
        return run.value(plant_of(run), "status").lower().replace("_", " "), "bad"
    status = run.value("arbiter", "status")
    if not status:
        return "waiting for the arbiter", "warn"
    report = run.report("arbiter")
    return status.lower().replace("_", " "), "good" if report is not None and report.is_well else "warn"


def trouble_of(run: LiveRun) -> str:
    """Return what an operator should read at once."""
    return "The graph has ended; what is shown is its last state." if run.ended else run.status.trouble


def refusal_of_mode(run: LiveRun, mode: str) -> str:
    """Return why the graph cannot change to a mode, empty where it can."""
    missing = [name for name in _NEEDED[mode] if name not in run.reports]
    words = " and ".join(f"the {name.replace('_', ' ')}" for name in missing)
    return f"Mode {mode} needs {words}, which this graph does not have." if missing else ""


def drawing_pause(run: LiveRun) -> float:
    """Return for how many seconds charts stay at least as they were drawn."""
    return QUICK_PAUSE if run.status.steps_per_second > QUICK_RATE else 0.0


class OperatorPage:
    """One open browser."""

    def __init__(self, run: LiveRun, controls: Controls) -> None:
        self._run = run
        self._controls = controls
        self._seen: dict[str, dict[str, int]] = {}  # by what is refreshed, the versions that it shows
        self._models: list[str] = []
        self._drawn_at = -math.inf
        add_look()
        self._add_header()
        with ui.element("main").classes("lift-grid"):
            self._add_path()
            self._add_now()
            self._add_settings()
            self._add_steps()
            self._add_nodes()
            self._add_table()
        ui.timer(PICTURE_SECONDS, self._refresh_picture)
        ui.timer(CHART_SECONDS, self._refresh)
        ui.timer(TABLE_SECONDS, self._refresh_table)

    # --- what stands where -----------------------------------------------------------------------------------------

    def _add_header(self) -> None:
        with ui.element("header").classes("lift-header"):
            with ui.element("div").classes("lift-title"):
                ui.label(self._run.words.scenario).classes("lift-name")
                ui.label(Path(self._run.run).name).classes("lift-note")
            self._state = ui.label("connecting").classes("lift-state").props("id=state role=status")
            with ui.element("nav").classes("lift-buttons"):
                self._start = self._button("start", "Start", "play_arrow", partial(self._call, "start"))
                self._pause = self._button("pause", "Pause", "pause", partial(self._call, "pause"))
                self._resume = self._button("resume", "Resume", "play_arrow", partial(self._call, "resume"))
                self._stop = self._button("stop", "Stop", "stop", partial(self._call, "stop"))
                self._reset = self._button("reset-fault", "Reset fault", "build", partial(self._call, "reset_fault"))
                self._release = self._button("release", "Release stop", "lock_open", self._release_stop)
                add_theme_button()
            # A plain button and a plain request: it must not wait for anything else that the page does.
            with ui.element("button").classes("lift-emergency").props("id=emergency-stop type=button"):
                ui.label("EMERGENCY STOP")
                ui.label("Esc").classes("lift-key")
        ui.element("div").classes("lift-lost").props("id=lost role=alert")
        ui.element("div").classes("lift-held").props("id=held role=alert")
        self._banner = ui.label("").classes("lift-banner").props("id=banner role=alert")

    def _button(self, name: str, text: str, icon: str, act: Callable[[], Coroutine[Any, Any, None]]) -> ui.button:
        return ui.button(text, icon=icon, on_click=act).props(f"id={name} no-caps outline").classes("lift-act")

    def _add_path(self) -> None:
        with card("path", "Path of the episode"):
            self._path = ui.echart(charts.trail_chart(self._run.trail(), self._run.words)).classes("lift-tall")

    def _add_now(self) -> None:
        with card("now", "Now"):
            with ui.element("div").classes("lift-facts"):
                self._facts = {
                    name: _fact(name, words)
                    for name, words in (
                        ("actor", "acts"),
                        ("episode", "episode"),
                        ("step", "step"),
                        ("rate", "steps/s"),
                        ("distance", self._run.words.distance),
                        ("reached", "reached"),
                    )
                }
            with ui.element("div").classes("lift-seen"):
                self._picture = ui.element("img").classes("lift-picture").props('id=picture alt="camera picture"')
                self._picture.set_visibility(False)
                self._line = ui.echart(charts.trail_line(self._run.trail(), self._run.words)).classes("lift-line")

    def _add_settings(self) -> None:
        with card("settings", "Settings"):
            self._sliders = {"p": self._add_slider("p", 1, 0.01), "budget": self._add_slider("budget", 100, 1)}
            self._in_force = ui.label("").classes("lift-note").props("id=in-force")
            self._mode = ui.select(list(MODES), label="mode", on_change=self._on_mode).props("outlined dense id=mode")
            self._mode_note = ui.label("").classes("lift-note")
            with ui.element("div").classes("lift-row"):
                self._model = ui.select({}, label="model").props("outlined dense id=model")
                ui.button("Serve", on_click=self._serve).props("id=serve no-caps outline")
            self._model_note = ui.label("").classes("lift-note").props("id=model-note")

    def _add_slider(self, name: str, high: float, step: float) -> tuple[ui.label, ui.slider]:
        words = ui.label(name).classes("lift-setting").props(f"id={name}-words")
        slider = ui.slider(min=0, max=high, step=step).props(f"id={name} aria-label={name}")
        slider.on("change", lambda event: self._set(name, event.args))  # when the hand lets go
        return words, slider

    def _add_steps(self) -> None:
        with card("steps", "Steps per episode"):
            self._means = ui.html("", sanitize=False).props("id=means").classes("lift-means")
            self._steps = ui.echart(charts.steps_chart([])).classes("lift-line")

    def _add_nodes(self) -> None:
        with card("nodes", "Latencies and nodes"):
            self._latencies = ui.html("", sanitize=False).props("id=latencies")
            self._nodes = ui.html("", sanitize=False).props("id=nodes")

    def _add_table(self) -> None:
        with card("episodes", "Latest episodes"):
            self._table = episode_table()
            self._table.props('id=episodes virtual-scroll hide-bottom :rows-per-page-options="[0]"')

    # --- what changes ----------------------------------------------------------------------------------------------

    def _is_new(self, what: str, *parts: str) -> bool:
        versions = {part: self._run.versions[part] for part in parts}
        if self._seen.get(what) == versions:
            return False
        self._seen[what] = versions
        return True

    def _refresh_picture(self) -> None:
        picture = self._run.picture
        if picture is not None and self._is_new("picture", "picture"):
            self._picture.props["src"] = data_url(picture)
            self._picture.set_visibility(True)
            self._picture.update()

    def _refresh(self) -> None:
        if time.monotonic() >= self._drawn_at + drawing_pause(self._run) and self._is_new("trail", "trail"):
            self._drawn_at = time.monotonic()
            trail = self._run.trail()
            redraw(self._path, charts.trail_chart(trail, self._run.words))
            redraw(self._line, charts.trail_line(trail, self._run.words))
            self._show_facts(trail.points[-1].source if trail.points else None)
        if self._is_new("state", "reports"):
            self._show_state()
        if self._is_new("settings", "settings"):
            self._show_settings()

    def _refresh_table(self) -> None:
        if self._is_new("rows", "rows"):
            rows = self._run.rows()
            self._table.rows = [table_row(row) for row in rows[: -ROWS_SHOWN - 1 : -1]]
            redraw(self._steps, charts.steps_chart(rows))
            self._means.set_content(means(rows))
        if self._is_new("nodes", "reports"):
            self._latencies.set_content(
                html_table(("answers in [ms]", "median", "99 %"), latencies_of(self._run), numbers=True)
            )
            reports = sorted(self._run.reports.items())
            self._nodes.set_content(
                html_table(
                    ("node", "what it says"),
                    [(name, report.sentence) for name, report in reports],
                    ["" if report.is_well else "lift-bad" for _, report in reports],
                )
            )
            served = self._run.value("augmentor", "model")
            self._model_note.set_text(f"serves {served[:12]}" if served else "no model is served")
        found = self._controls.models()
        if found != self._models:
            self._models = found
            self._model.set_options({path: Path(path).name for path in found}, value=found[-1] if found else None)

    def _show_facts(self, actor: Source | None) -> None:
        status = self._run.status
        distance = status.distances[-1] if status.distances else math.nan
        seen = status.episodes_seen
        shown = {
            "actor": "–" if actor is None else charts.NAMES[actor],
            "episode": str(status.episode),
            "step": str(status.step),
            "rate": f"{status.steps_per_second:.0f}",
            "distance": f"{distance:.4g}" if math.isfinite(distance) else "–",
            "reached": f"{status.episodes_reached / seen:.0%}" if seen else "–",
        }
        for name, text in shown.items():
            self._facts[name].set_text(text)
        self._facts["actor"].classes(replace=f"lift-value lift-{shown['actor']}")

    def _show_state(self) -> None:
        run = self._run
        words, level = state_of(run)
        self._state.set_text(words)
        self._state.classes(replace=f"lift-state lift-is-{level}")
        trouble = trouble_of(run)
        self._banner.set_text(trouble)
        self._banner.set_visibility(bool(trouble))
        arbiter, plant = run.value("arbiter", "status"), run.value(plant_of(run), "status")
        waits, paused = arbiter == WAITING, arbiter == PAUSED
        self._start.set_visibility(waits)
        self._pause.set_visibility(not (waits or paused))
        self._resume.set_visibility(paused)
        self._reset.set_visibility(plant == FAULT)
        self._release.set_visibility(plant == STOPPED)
        for button in (self._start, self._pause, self._resume, self._stop, self._release, self._reset):
            button.set_enabled(bool(arbiter) and not run.ended)
        p, budget, guard = (run.value("arbiter", name) for name in ("p", "budget", "guard"))
        self._in_force.set_text(f"guard: {guard}" if guard else f"in force: p {p}, budget {budget}")

    def _show_settings(self) -> None:
        for name, (words, slider) in self._sliders.items():
            value = self._run.settings.get(name)
            if isinstance(value, int | float):
                slider.set_value(value)
                words.set_text(f"{name} {value:g}")
        mode = str(self._run.settings.get("mode", ""))
        if mode in MODES:
            self._mode.set_value(mode)
            self._mode_note.set_text(MODES[mode])

    # --- what people do --------------------------------------------------------------------------------------------

    async def _call(self, service: str) -> None:
        await _tell(self._controls.call(service))

    async def _release_stop(self) -> None:
        await _tell(self._controls.emergency_stop(stopped=False))

    async def _set(self, name: str, value: Any) -> None:
        if isinstance(value, int | float):
            await _tell(self._controls.set(name, float(value) if name == "p" else round(value)))
            self._show_settings()  # what was refused slides back

    async def _on_mode(self, event: Any) -> None:
        if event.value == self._run.settings.get("mode"):
            return
        if refusal := refusal_of_mode(self._run, event.value):
            ui.notify(refusal, type="negative", multi_line=True)
        else:
            await _tell(self._controls.set("mode", event.value))
        self._show_settings()

    async def _serve(self) -> None:
        if self._model.value:
            await _tell(self._controls.serve_model(self._model.value))


def _fact(name: str, words: str) -> ui.label:
    with ui.element("div").classes("lift-fact"):
        value = ui.label("–").classes("lift-value").props(f"id={name}")
        ui.label(words).classes("lift-note")
    return value


async def _tell(doing: Coroutine[Any, Any, str]) -> None:
    """Do something and say what became of it."""
    try:
        ui.notify(await doing, type="positive", timeout=1500)
    except UserError as error:
        ui.notify(str(error), type="negative", multi_line=True)


def means(rows: Sequence[EpisodeRow]) -> str:
    """Return the mean steps of the routine alone and with the augmentor, and what one saves against the other."""
    alone, lifted = (charts.mean_steps(rows, alone=value) for value in (True, False))
    words = [f"routine alone <b>{_shown(alone)}</b>", f"with the augmentor <b>{_shown(lifted)}</b>"]
    if math.isfinite(alone) and math.isfinite(lifted):
        words.append(f"<b>{lifted / alone - 1:+.0%}</b> steps")
    return " · ".join(words) + " <span class=lift-note>(mean of those that arrived)</span>"


def _shown(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "–"


def declare_operator_page(server: FastAPI, run: LiveRun, controls: Controls) -> None:
    """Have NiceGUI know the page, and the server the request of the emergency stop."""

    @ui.page("/")
    def operator() -> None:
        OperatorPage(run, controls)

    app.on_connect(lambda: run.looked_at(1))
    app.on_disconnect(lambda: run.looked_at(-1))

    @server.post("/emergency_stop")
    async def emergency_stop() -> JSONResponse:
        began = time.monotonic()
        try:
            words = await controls.emergency_stop(stopped=True)
        except UserError as error:
            return JSONResponse({"held": False, "words": str(error)}, status_code=503)
        return JSONResponse({"held": True, "words": words, "seconds": time.monotonic() - began})
