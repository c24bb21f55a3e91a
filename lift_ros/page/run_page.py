"""The page of `lift view`: runs side by side, each with its table of episodes and a walk through the steps of one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from nicegui import app, ui

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Source
from lift_ros.errors import UserError
from lift_ros.page import charts
from lift_ros.page.layout import add_look, add_theme_button, card, html_table, redraw
from lift_ros.page.pictures import data_url
from lift_ros.page.recorded import RecordedEpisode, RecordedRun, decision_of
from lift_ros.page.rows import COLUMNS, episode_table, table_row
from lift_ros.policies.learned import LearnedPolicy

ROWS = 8
LIST_SECONDS = 0.5


@dataclass(frozen=True)
class ShownModel:
    """A model whose proposals are shown beside what was done."""

    name: str
    policy: LearnedPolicy


class RunPane:
    """One run on the page."""

    def __init__(self, run: RecordedRun, models: Sequence[ShownModel], number: int) -> None:
        self._run = run
        self._models = models
        self._episode: RecordedEpisode | None = None
        self._order = ("index", False)
        self._first = 0
        with ui.element("div").classes("lift-pane").props(f"id=run-{number}"):
            with card("run", f"{run.path.name} · {run.words.scenario}"):
                self._progress = ui.label("").classes("lift-note lift-progress")
                self._table = episode_table(
                    sortable=True, pagination={"rowsPerPage": ROWS, "rowsNumber": len(run.indices), "page": 1}
                )
                self._table.props("binary-state-sort :rows-per-page-options='[8,25,100]'")
                self._table.on("request", self._on_request)
                self._table.on("row-click", lambda event: self.open(int(event.args[1]["index"])))
            with card("episode", "Episode"):
                self._title = ui.label("").classes("lift-value lift-opened")
                with ui.element("div").classes("lift-row"):
                    self._slider = ui.slider(min=0, max=1, step=1, value=0, on_change=lambda event: self._show())
                    self._slider.props("label snap aria-label=step").classes("lift-scrub")
                    self._place = ui.label("").classes("lift-note lift-place")
                self._decision = ui.label("").classes("lift-decision")
                with ui.element("div").classes("lift-seen"):
                    self._picture = ui.element("img").classes("lift-picture").props('alt="camera picture"')
                    self._path = ui.echart(charts.base()).classes("lift-tall")
                self._line = ui.echart(charts.base()).classes("lift-line")
                self._steps = ui.html("", sanitize=False).classes("lift-proposals")
        self._fill()
        self._timer = ui.timer(LIST_SECONDS, self._note_progress)
        if run.indices:
            self.open(run.indices[0])

    def open(self, index: int) -> None:
        """Show an episode from its beginning."""
        try:
            self._episode = self._run.episode(index)
        except UserError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        count = len(self._episode.steps)
        words = self._episode.episode.outcome.name.lower().replace("_", " ")
        reason = f": {self._episode.episode.reason}" if self._episode.episode.reason else ""
        self._title.set_text(f"{index} · {words}{reason} · {count} steps")
        self._slider.props["max"] = count
        self._slider.value = 0
        self._slider.update()
        self._show()

    def _on_request(self, event: Any) -> None:
        asked = event.args["pagination"]
        self._order = (asked.get("sortBy") or "index", bool(asked.get("descending")))
        if self._order[0] not in COLUMNS:
            return
        self._first = (int(asked["page"]) - 1) * int(asked["rowsPerPage"])
        self._table.pagination.update(asked)
        self._fill()

    def _fill(self) -> None:
        count = int(self._table.pagination.get("rowsPerPage", ROWS)) or len(self._run.indices)
        try:
            rows = self._run.page(self._first, count, self._order[0], descending=self._order[1])
        except UserError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        self._table.rows = [table_row(row) for row in rows]

    def _note_progress(self) -> None:
        listed, count = len(self._run.rows), len(self._run.indices)
        self._progress.set_text(
            self._run.trouble or ("" if listed == count else f"listed {listed} of {count} episodes")
        )
        if self._order[0] != "index":
            self._fill()
        if self._run.is_listed:
            self._timer.deactivate()

    def _show(self) -> None:
        shown = self._episode
        if shown is None:
            return
        place = min(int(self._slider.value or 0), len(shown.steps))
        self._place.set_text(f"{place} of {len(shown.steps)}")
        picture = shown.picture(place)
        self._picture.set_visibility(picture is not None)
        if picture is not None:
            self._picture.props["src"] = data_url(picture)
            self._picture.update()
        redraw(self._line, charts.episode_line(shown.distances, [step.observation for step in shown.steps], place,
                                               self._run.words))  # fmt: skip
        if place == len(shown.steps):
            self._decision.set_text("The end: what was seen after the last step.")
            self._steps.set_content("")
            redraw(self._path, self._drawn(shown, place, {}, []))
            return
        step = shown.steps[place]
        arrows = {
            charts.PROPOSES[Source.LOGGING_POLICY]: step.logging_proposal,
            charts.PROPOSES[Source.AUGMENTOR]: step.augmentor_proposal,
        }
        misfits = []
        for model in self._models:
            try:
                arrows[model.name] = shown.proposal(model.policy, place)
            except UserError as error:
                misfits.append((model.name, str(error)))
        given = {name: action for name, action in arrows.items() if action.size}
        stops = shown.shortcuts(place)
        self._decision.set_text(decision_of(step))
        rows = [("done", vector(step.action)), *((name, vector(action)) for name, action in given.items())]
        rows += [*misfits, ("observation", vector(step.observation))]
        rows.append(("shortcuts to step", ", ".join(map(str, stops)) or "none"))
        if step.model_hash:
            rows.append(("model", step.model_hash[:12]))
        self._steps.set_content(html_table(("", ""), rows))
        redraw(self._path, self._drawn(shown, place, given, stops))

    def _drawn(
        self, shown: RecordedEpisode, place: int, arrows: dict[str, FloatArray], stops: Sequence[int]
    ) -> charts.Options:
        sources = [step.source for step in shown.steps]
        return charts.episode_chart(
            shown.path, sources, place, self._run.words, known=shown.known, goal=shown.goal, arrows=arrows, stops=stops
        )


def vector(values: FloatArray) -> str:
    """Return numbers as they are read in a line."""
    return ", ".join(f"{value:.4g}" for value in values.tolist())


def declare_run_page(_server: FastAPI, runs: Sequence[RecordedRun], models: Sequence[ShownModel]) -> None:
    """Have NiceGUI know the page."""
    ended = threading.Event()

    @ui.page("/")
    def view() -> None:
        add_look()
        with ui.element("header").classes("lift-header"):
            ui.label("lift view").classes("lift-name")
            names = ", ".join(model.name for model in models)
            ui.label(f"beside what was done: {names}" if names else "").classes("lift-note")
            with ui.element("nav").classes("lift-buttons"):
                add_theme_button()
        ui.element("div").classes("lift-lost").props("id=lost role=alert")
        with ui.element("main").classes("lift-panes"):
            for number, run in enumerate(runs):
                RunPane(run, models, number)

    def list_runs() -> None:
        for run in runs:
            run.list_all(ended.is_set)

    app.on_startup(threading.Thread(target=list_runs, name="lists episodes", daemon=True).start)
    app.on_shutdown(ended.set)
