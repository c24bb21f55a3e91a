"""The trainer: from recorded episodes to a model, with progress, checkpoints and measurements on the way."""

from __future__ import annotations

import contextlib
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lift_ros
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.bags.pictures import PictureStore, store_episode_pictures
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.policies.coverage import fit_coverage
from lift_ros.policies.inputs import fit_inputs
from lift_ros.policies.learned import MODEL_KIND, MODEL_VERSION, REFERENCE, SIGHT_VERSION, LearnedPolicy
from lift_ros.policies.model_file import Tensors, pack, write_bytes
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.policies.sight import VALUES, Sight
from lift_ros.progress import Progress
from lift_ros.scenario import Scenario
from lift_ros.shortcuts.motion import Motion, choose_motion
from lift_ros.shortcuts.rule import PLAIN
from lift_ros.shortcuts.sampler import ShortcutSampler
from lift_ros.training.checkpoint import Progressed, checkpoint_path, load_checkpoint, save_checkpoint
from lift_ros.training.compositions import Composer, require_one_start
from lift_ros.training.data import TrainingData, held_out, make_data, make_track, with_picture_rows
from lift_ros.training.learners import CloneLearner, CQLLearner, Learner
from lift_ros.training.options import OURS, TrainingOptions
from lift_ros.training.picture_batches import Changes, PictureBatches
from lift_ros.training.picture_learner import Lesson, PictureLearner
from lift_ros.training.runs import RecordedRuns

Judge = Callable[[LearnedPolicy], Mapping[str, float]]  # measures a policy; more of "score" is better
_LOSS_WINDOW = 100


@dataclass(frozen=True)
class TrainingResult:
    """What a training gave: the last policy, where its model was written, and how far it came."""

    policy: LearnedPolicy
    path: Path | None
    best_path: Path | None
    updates: int
    complete: bool
    drives: bool  # the actor has begun to learn
    losses: dict[str, float]
    evaluations: list[dict[str, float]]


def best_path(model: str | Path) -> Path:
    """Return where the model with the best measurement is kept."""
    path = Path(model)
    return path.with_name(f"{path.stem}.best{path.suffix}")


def train(
    episodes: RecordedRuns | Sequence[Episode],
    options: TrainingOptions | None = None,
    *,
    action_radius: float,
    out: str | Path | None = None,
    threads: int | None = None,
    progress: bool = False,
    judge: Judge | None = None,
    judge_every: int = 0,
    checkpoint_every: int = 0,
    resume: bool = False,
    stop: Callable[[], bool] | None = None,
    tensorboard: str | Path | None = None,
    scenario: Scenario | None = None,
    eyes: LearnedPolicy | None = None,
) -> TrainingResult:
    """Train on what `load_runs` gave, or on episodes in memory, write the model to `out` where given, and return it.

    `stop` is asked after every update; once it says yes, the training ends with a usable model and, with `out`,
    a checkpoint from which `resume` continues to the very result of an uninterrupted training. With a `judge`
    every `judge_every` updates are measured and the best model is kept beside the last. What the model is to see of
    episodes in memory is what `scenario` says; runs know it themselves. Where models see pictures, `eyes` is one whose
    encoder is taken as it is, which spares the lessons.
    """
    options = TrainingOptions() if options is None else options
    if eyes is not None:
        options = options.with_eyes(eyes.hash)
    if resume and out is None:
        raise UserError("resume needs the model file `out`, next to which the checkpoint lies")
    if isinstance(episodes, RecordedRuns):
        arrays, sources, scenario = episodes.arrays, episodes.sources, episodes.scenario
        sight, preprocessing = episodes.sight, episodes.preprocessing
    else:
        arrays, sources = episodes_to_arrays(episodes), []
        sight, preprocessing = VALUES, None
        if scenario is not None:
            sight, preprocessing = scenario.model_sight, scenario.make_preprocessing()
    if preprocessing is not None:
        arrays = with_picture_rows(arrays)
    spared = held_out(len(arrays), options.held_out, options.seed)
    sources = [
        {**source, "held_out": arrays.episodes[spared & (arrays.runs == number)].tolist()}
        for number, source in enumerate(sources)
    ]
    arrays = arrays.select(~spared)
    if options.composed and preprocessing is not None:
        require_one_start(arrays, action_radius)
    data = make_data(arrays, options.reward, sight)
    # Without shortcuts nothing is added up, so that it does not matter how.
    motion = choose_motion("linear" if options.strategy == PLAIN else options.motion, make_track(arrays))
    threads = threads or min(2, len(os.sched_getaffinity(0)))
    path = None if out is None else Path(out)
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        # Our CQL brings threads of its own and computes the same numbers with any number of them.
        torch.set_num_threads(1 if options.algorithm == "CQL" and preprocessing is None else threads)
        stack.enter_context(torch.random.fork_rng(devices=[]))
        pictures = None
        if preprocessing is not None and data.picture_rows is not None:
            store = stack.enter_context(closing(_open_pictures(episodes, preprocessing, options, progress)))
            pictures = PictureBatches(store, data.picture_rows, preprocessing, Changes.of(options))
        run = _Run(
            data, motion, options, action_radius, sources, scenario, threads, path, tensorboard, sight, pictures, eyes
        )
        stack.callback(run.close)
        if resume:
            run.resume()
        run.execute(progress, judge, judge_every, checkpoint_every, stop)
        return run.finish()


def _open_pictures(
    episodes: RecordedRuns | Sequence[Episode], preprocessing: Preprocessing, options: TrainingOptions, progress: bool
) -> PictureStore:
    if isinstance(episodes, RecordedRuns):
        return episodes.open_pictures(options.picture_memory, progress)
    made = preprocessing
    return store_episode_pictures(episodes, made.of, made.shape, made.dtype, memory_limit=options.picture_memory)


class _Run:
    """One training under way."""

    def __init__(
        self,
        data: TrainingData,
        motion: Motion,
        options: TrainingOptions,
        action_radius: float,
        sources: list[dict[str, Any]],
        scenario: Scenario | None,
        threads: int,
        path: Path | None,
        tensorboard: str | Path | None,
        sight: Sight,
        pictures: PictureBatches | None,
        eyes: LearnedPolicy | None,
    ) -> None:
        self._options = options
        self._sight, self._pictures = sight, pictures
        self._total = options.total_updates(pictures=pictures is not None)
        self._scenario = None if scenario is None else {"name": scenario.name, **scenario.as_dict()}
        self._path = path
        self._sources = sources
        self._writer = _summary_writer(tensorboard)
        self._progressed = Progressed()
        self._action_radius = float(action_radius)
        self._inputs = fit_inputs(data.observations, options.scale_observations)
        self._seen = self._inputs.of(data.observations)
        self._sampler = ShortcutSampler(
            self._seen,
            data.actions,
            data.rewards,
            data.offsets,
            data.terminated,
            self._inputs.of(data.final_observations),
            action_radius=self._action_radius,
            gamma=options.gamma,
            C=options.C,
            strategy=options.strategy,
            kappa=motion.kappa,
            episodes_first=options.draw == "episodes",
            far=options.aims_far,
            rests=data.rests if options.aims_at_goals and motion.kappa == 0 else None,
            memory_limit_bytes=options.pairs_memory,
            seed=options.seed,
        )
        self._coverage: Tensors = {}
        if pictures is None:
            self._coverage = fit_coverage(np.concatenate([data.observations, data.final_observations]))
        self._sizes = (data.observations.shape[1], data.actions.shape[1])
        torch.manual_seed(options.seed)
        known = np.repeat(data.arrived, np.diff(data.offsets))
        composer = None
        if options.composed and data.picture_rows is not None:
            composer = Composer(options.composed, data.offsets, data.picture_rows, data.arrived)
        lesson = Lesson(self._sampler.ways_left() / np.float32(self._action_radius), known, data.places, composer)
        self._learner = _make_learner(options, self._inputs.size, self._sizes[1], threads, pictures, lesson, eyes)
        facts = data.facts()
        self._motion = motion
        self._data = {**facts, "labelled": data.labelled, "left_out": data.left_out}
        self._identity = {
            "options": options.as_dict(),
            "action_radius": self._action_radius,
            "data": facts,
            "kappa": motion.kappa,
        }
        if sight != VALUES:
            self._identity |= {"sees": str(sight), **self._eyes()}

    def close(self) -> None:
        self._learner.close()
        if self._writer is not None:
            self._writer.close()

    def resume(self) -> None:
        """Continue from the checkpoint beside the model."""
        assert self._path is not None
        path = checkpoint_path(self._path)
        if not path.exists():
            raise UserError(f"there is no checkpoint {path}; train without --resume")
        self._progressed = load_checkpoint(path, self._identity, self._learner, self._sampler)

    def execute(
        self,
        show: bool,
        judge: Judge | None,
        judge_every: int,
        checkpoint_every: int,
        stop: Callable[[], bool] | None,
    ) -> None:
        """Make the updates that are missing, or those until `stop` says yes."""
        progressed, total = self._progressed, self._total
        with Progress(total, "training", unit="updates", enabled=show) as bar:
            bar.advance(progressed.done)
            while progressed.done < total:
                batch = self._sampler.sample(self._learner.batch_size)
                for actions in (batch.actions, batch.aims):
                    np.divide(actions, self._action_radius, out=actions)
                losses = self._learner.update(batch)
                progressed.done += 1
                _mix(progressed.losses, losses, progressed.done)
                bar.advance(1, note=_note(progressed) if show and progressed.done % 20 == 0 else None)
                self._log("loss", losses)
                due = judge_every and (progressed.done % judge_every == 0 or progressed.done == total)
                if judge is not None and due and self._learner.drives:
                    self._judge(judge)
                if stop is not None and stop():
                    break
                if checkpoint_every and progressed.done % checkpoint_every == 0:
                    self._save_checkpoint()

    def finish(self) -> TrainingResult:
        """Write the model, and what a resumed training needs where updates are missing."""
        progressed, path = self._progressed, self._path
        complete = progressed.done == self._total
        if isinstance(self._learner, PictureLearner):
            self._coverage = self._learner.coverage(self._seen)
        policy, data = self._model()
        if path is not None:
            write_bytes(path, data)
            if complete:
                checkpoint_path(path).unlink(missing_ok=True)
            else:
                self._save_checkpoint()
        best = best_path(path) if path is not None and progressed.evaluations else None
        return TrainingResult(
            policy=policy,
            path=path,
            best_path=best,
            updates=progressed.done,
            complete=complete,
            drives=self._learner.drives,
            losses=progressed.losses,
            evaluations=progressed.evaluations,
        )

    def _judge(self, judge: Judge) -> None:
        policy, data = self._model()
        measured = {name: float(value) for name, value in judge(policy).items()}
        evaluations = self._progressed.evaluations
        best = max((entry["score"] for entry in evaluations), default=-math.inf)
        if self._path is not None and (not evaluations or measured["score"] > best):
            write_bytes(best_path(self._path), data)
        evaluations.append({"update": self._progressed.done, **measured})
        self._log("evaluation", measured)

    def _log(self, group: str, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(f"{group}/{name}", value, self._progressed.done)

    def _save_checkpoint(self) -> None:
        if self._path is not None:
            path = checkpoint_path(self._path)
            save_checkpoint(path, self._identity, self._learner, self._sampler, self._progressed)

    def _model(self) -> tuple[LearnedPolicy, bytes]:
        """Return the policy as it is now, and the bytes of its file."""
        progressed = self._progressed
        tensors: Tensors = self._learner.networks()
        critics = sum(name.startswith("critics.") and name.endswith(".0.weight") for name in tensors)
        tensors |= self._inputs.tensors() | self._coverage
        if self._pictures is not None and (reference := self._pictures.preprocessing.reference) is not None:
            tensors[REFERENCE] = reference.astype(np.float32)
        broken = sorted(name for name, tensor in tensors.items() if not np.isfinite(tensor).all())
        if broken:
            raise UserError(
                f"training diverged: after {progressed.done} updates {broken[0]} holds NaN or infinity; "
                "lower the learning rates or scale the observations"
            )
        description = {
            "kind": MODEL_KIND,
            "version": MODEL_VERSION if self._sight == VALUES else SIGHT_VERSION,
            "lift_ros": lift_ros.__version__,
            "algorithm": self._options.algorithm,
            "observation_size": self._sizes[0],
            "action_size": self._sizes[1],
            "action_radius": self._action_radius,
            "critics": critics,
            **({} if self._sight == VALUES else {"sees": str(self._sight), **self._eyes()}),
            "scenario": self._scenario,  # of the runs, if they have one in common
            "training": {
                "options": self._identity["options"],
                "updates": progressed.done,
                "data": self._data,
                "motion": asdict(self._motion),
                "pairs": self._sampler.pairs,
                "bags": self._sources,
                "losses": {name: value for name, value in progressed.losses.items() if np.isfinite(value)},
                "evaluations": list(progressed.evaluations),
                "versions": {
                    "python": platform.python_version(),
                    "numpy": np.__version__,
                    "torch": str(torch.__version__),
                },
            },
        }
        data, digest = pack(tensors, description)
        return LearnedPolicy(tensors, description, digest, "the new model"), data

    def _eyes(self) -> dict[str, Any]:
        """Return what the model file says of pictures."""
        if self._pictures is None:
            return {}
        about = {"picture": self._pictures.preprocessing.description()}
        if (plan := getattr(self._learner, "plan", None)) is not None:
            about["encoder"] = plan.as_dict()
        return about


def _make_learner(
    options: TrainingOptions,
    inputs: int,
    action_size: int,
    threads: int,
    pictures: PictureBatches | None,
    lesson: Lesson,
    eyes: LearnedPolicy | None,
) -> Learner:
    if pictures is not None and options.algorithm in OURS:
        return PictureLearner(options, inputs, action_size, threads, pictures, lesson, eyes)
    if eyes is not None:
        reason = f"{options.algorithm} has an encoder of its own" if pictures is not None else "models see no pictures"
        raise UserError(f"eyes cannot be taken from a model: {reason}; leave them out")
    if options.algorithm == "CQL":
        return CQLLearner(options, inputs, action_size, threads)
    if options.algorithm == "clone":
        return CloneLearner(options, inputs, action_size)
    from lift_ros.training.stock import StockLearner  # here, since d3rlpy is slow to come

    return StockLearner(options, inputs, action_size, pictures)


def _mix(running: dict[str, float], losses: Mapping[str, float], done: int) -> None:
    weight = 1.0 / min(done, _LOSS_WINDOW)
    for name, value in losses.items():
        running[name] = running.get(name, 0.0) * (1.0 - weight) + weight * float(value)


def _note(progressed: Progressed) -> str:
    losses = {name: value for name, value in progressed.losses.items() if name.endswith("loss")}
    words = [f"{name.removesuffix('_loss')} {value:.3g}" for name, value in losses.items()]
    if progressed.evaluations:
        words.append(f"success {progressed.evaluations[-1].get('success', float('nan')):.2f}")
    return ", ".join(words)


def _summary_writer(folder: str | Path | None) -> Any:
    if folder is None:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError(
            "TensorBoard is not installed; install it with `pip install tensorboard`, or lift_ros with its extra "
            "`tensorboard`, or leave --tensorboard out"
        ) from error
    return SummaryWriter(str(folder))
