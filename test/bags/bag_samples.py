"""Episodes that exercise every field of the records, the same for the same index."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lift_ros.bags import RunWriter
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.seeds import generator

TIME = 1_700_000_000_000_000_000


def sample_picture(rng: np.random.Generator, encoding: str = "rgb8") -> np.ndarray:
    """Return a picture of 5 rows and 4 columns; floats have a sign."""
    kind = PictureFormat(5, 4, encoding)
    if kind.dtype.kind == "f":
        return rng.normal(size=kind.shape).astype(kind.dtype)
    return rng.integers(0, np.iinfo(kind.dtype).max + 1, kind.shape, dtype=kind.dtype)


def sample_episode(
    index: int, steps: int = 4, *, image: bool = False, seed: int = 0, encoding: str = "rgb8"
) -> Episode:
    """Return an episode whose every value is drawn at random from its index."""
    rng = generator(seed, "sample", index)
    start = TIME + index * 10**10

    def picture() -> np.ndarray | None:
        return sample_picture(rng, encoding) if image else None

    def step(number: int) -> Step:
        augmented = bool(rng.integers(2))
        return Step(
            episode=index,
            index=number,
            time_ns=start + number * 10**8,
            observation=rng.normal(size=3),
            position=rng.normal(size=2),
            action=rng.normal(size=2),
            source=Source.AUGMENTOR if augmented else Source.LOGGING_POLICY,
            reward=float(rng.normal()) if index % 2 else float("nan"),
            logging_proposal=rng.normal(size=2),
            augmentor_proposal=rng.normal(size=2) if augmented else np.empty(0),
            rejection=Rejection.NONE if augmented else Rejection.LATE,
            draw=float(rng.random()),
            p=0.5,
            augmentations_left=20 - number % 20,
            model_hash="0123456789abcdef" * 4 if augmented else "",
            image=picture(),
        )

    return Episode(
        index=index,
        seed=int(rng.integers(2**63)),
        mode=Mode.COLLECT,
        outcome=Outcome.REACHED,
        steps=[step(number) for number in range(steps)],
        final_observation=rng.normal(size=3),
        final_position=rng.normal(size=2),
        final_image=picture(),
        goal=rng.normal(size=2),
        context=rng.normal(size=7),
        start_time_ns=start,
        end_time_ns=start + steps * 10**8,
    )


def write_run(
    path: Path,
    episodes: int = 3,
    steps: int = 4,
    *,
    per_file: int = 1,
    image: bool = False,
    first: int = 0,
    encoding: str = "rgb8",
    compression: str = "none",
) -> list[Episode]:
    """Record sample episodes into a run and return them."""
    numbers = range(first, first + episodes)
    written = [sample_episode(index, steps, image=image, encoding=encoding) for index in numbers]
    facts = {"seed": 7, "scenario": "sample"}
    with RunWriter(path, facts, per_file, sync=False, reserve=0, compression=compression) as writer:
        for episode in written:
            writer.write_episode(episode)
    return written
