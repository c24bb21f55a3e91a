"""Executable `trainer`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import lift_ros.msg as msg
from lift_ros.bags import RunReader
from lift_ros.collection.exchange import Failed, Model, Ready, Receipt
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.graph.parameters import default_model_folder
from lift_ros.messages.records import decode_receipt, encode_model
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.senders import RECEIPTS
from lift_ros.training.job import TrainingJob

POLL_SECONDS = 0.1
COUNT_SECONDS = 2.0
RETRY_SECONDS = 5.0
END_SECONDS = 0.4


class Trainer(LiftNode):
    """Starts training when enough episodes are recorded, in a process that may be killed without loss."""

    executable = "trainer"
    summary = "trains a model on the recorded run in a process of its own and announces it to the augmentor"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.value("run"):
            raise UserError("parameter run is empty; give the folder of the run that the recorder writes")
        self._run = Path(self.value("run"))
        self._models = Path(self.value("models") or default_model_folder(self._run))
        self._options = self.json_value("training")
        self._recorded = 0
        self._count_at = 0.0
        self._trained = 0  # episodes of the last announced model
        self._job: TrainingJob | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._finding: dict[str, Any] = {}  # the last line of the process
        self._not_before = 0.0
        self._publisher = self.create_publisher(msg.Model, qos.MODEL, qos.LATCHED)
        self.listen(msg.Receipt, qos.RECEIPT, decode_receipt, self._on_receipt, roles=RECEIPTS)
        self.every(POLL_SECONDS, self._poll)
        self.set_status(Status.WAITING_FOR_EPISODES)

    def _on_receipt(self, receipt: Ready | Receipt | Failed) -> None:
        if isinstance(receipt, Receipt) and receipt.step is None:
            self._recorded = max(self._recorded, receipt.episode + 1)

    def _due(self) -> int:
        """Return on how many episodes to train now, or 0; never on a number that depends on how fast training was."""
        first, every = self.value("train_after"), self.value("train_every")
        if self._recorded < first:
            return 0
        due: int = first + (self._recorded - first) // every * every if every else first
        return due if due > self._trained else 0

    def _poll(self) -> None:
        if not self._trained and self._process is None and time.monotonic() >= self._count_at:
            # Receipts that were sent before this node was seen never come, and with them the model all wait for.
            self._recorded = max(self._recorded, _count_episodes(self._run))
            self._count_at = time.monotonic() + COUNT_SECONDS
        self.diagnostics.facts["episodes recorded"] = self._recorded
        if self._process is not None:
            self._watch(self._process)
        elif (due := self._due()) and time.monotonic() >= self._not_before:
            self._begin(due)

    # --- the process -----------------------------------------------------------------------------------------------

    def _begin(self, episodes: int) -> None:
        self._job = TrainingJob(
            run=str(self._run),
            episodes=episodes,
            scenario=self.value("scenario"),
            out=str(self._models / f"model_{episodes:06d}.safetensors"),
            seed=self.value("seed"),
            threads=self.value("threads"),
            niceness=self.value("niceness"),
            options=self._options,
        )
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(self._job.threads))
        self._process = subprocess.Popen(
            self._job.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            bufsize=0,  # reading what is there never waits
            env={**os.environ, **limits},
            start_new_session=True,  # Ctrl-C reaches this node, which then ends it
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._pending, self._finding = b"", {}
        self.diagnostics.facts["training process"] = self._process.pid
        self.diagnostics.count("trainings")
        self.get_logger().info(f"trains on {episodes} episodes")
        self.set_status(Status.TRAINING)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        ended = process.poll() is not None
        self._read(process)
        if not ended:
            if "updates" in self._finding:
                self.set_status(Status.TRAINING, f"{self._finding['updates']} of {self._finding['of']} updates.")
            return
        assert process.stdout is not None
        process.stdout.close()
        self._process = None
        self.diagnostics.facts["training process"] = ""
        if process.returncode == 0 and "model" in self._finding and self._job is not None:
            self._announce(self._job, self._finding)
        else:
            reason = self._finding.get("error", f"the process ended with status {process.returncode}")
            self._not_before = time.monotonic() + RETRY_SECONDS
            self.get_logger().error(f"training failed and is tried again: {reason}")
            self.set_status(Status.TRAINING_FAILED, str(reason))

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        *lines, self._pending = (self._pending + (process.stdout.read() or b"")).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                finding = json.loads(line)
                self._finding = finding if isinstance(finding, dict) else self._finding
                for doubt in self._finding.get("doubts", ()):
                    self.get_logger().warning(f"trains, but {doubt}")

    def _announce(self, job: TrainingJob, finding: dict[str, Any]) -> None:
        model = Model(finding["model"], finding["sha256"], finding["algorithm"], job.episodes)
        self._trained = job.episodes
        self._publisher.publish(encode_model(model, time.time_ns()))
        self.diagnostics.facts["model"] = model.sha256
        self.get_logger().info(f"announces {model.path}")
        self.set_status(Status.TRAINED)

    def close(self) -> None:
        """End the training under way; the next start begins it again."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _count_episodes(path: Path) -> int:
    try:
        reader = RunReader(path)
        indices = reader.episode_indices
        if not indices:
            return 0
        last = indices[-1]
        under_way = reader.files[last] == reader.journal and reader.episode(last).outcome is Outcome.RECOVERED
    except (UserError, FileNotFoundError):
        return 0  # the recorder has not created it yet, or completes a file at this moment
    return last + 1 - under_way


main = Trainer.main
