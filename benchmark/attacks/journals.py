"""Damage at random places of journals and finished files: what is read or recovered afterwards is true, or refused.

`python -m benchmark.attacks.journals [--count N] [--seed S]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmark.bags import make_episode
from lift_ros.bags import EpisodeArrays, RunReader, RunWriter, episodes_to_arrays, load_arrays
from lift_ros.bags.files import JOURNAL_SUFFIX
from lift_ros.collection.records import Episode, Outcome, same
from lift_ros.errors import UserError
from lift_ros.seeds import generator

STEPS = 25
EPISODES = 3
FACTS = {"seed": 1}
Damage = Callable[[bytearray, np.random.Generator], None]


def zero_page(content: bytearray, rng: np.random.Generator) -> None:
    """Let a page or a sector never have reached the disk."""
    size = int(rng.choice([512, 4096]))
    start = int(rng.integers(-(-len(content) // size))) * size
    _zero(content, start, start + size)


def zero_anywhere(content: bytearray, rng: np.random.Generator) -> None:
    """Let some bytes be zero."""
    start = int(rng.integers(len(content)))
    _zero(content, start, start + int(rng.integers(1, 1000)))


def lose_tail(content: bytearray, rng: np.random.Generator) -> None:
    """Let the file have its length, but not the last of its content."""
    _zero(content, int(rng.integers(len(content))), len(content))


def truncate(content: bytearray, rng: np.random.Generator) -> None:
    """Cut the file off."""
    del content[int(rng.integers(len(content))) :]


def flip(content: bytearray, rng: np.random.Generator) -> None:
    """Flip up to three bits."""
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))


def _zero(content: bytearray, start: int, end: int) -> None:
    end = min(end, len(content))
    content[start:end] = bytes(end - start)


DAMAGES: tuple[Damage, ...] = (zero_page, zero_anywhere, lose_tail, truncate, flip)


def attack(count: int, seed: int) -> dict[str, int]:
    """Return how many damaged files gave true steps only, nothing or a refusal, or something untrue."""
    rng = generator(seed, "journals")
    written = [make_episode(index, STEPS) for index in range(EPISODES)]
    result = Counter({"recovered true": 0, "refused": 0, "untrue": 0})
    with tempfile.TemporaryDirectory(prefix="lift_journals_") as folder:
        samples = [_record(Path(folder, "sample"), written, under_way=under_way) for under_way in (True, False)]
        for number in range(count):
            under_way = bool(rng.integers(2))
            content = bytearray(samples[0] if under_way else samples[1])
            DAMAGES[number % len(DAMAGES)](content, rng)
            run = Path(folder, "run")
            run.mkdir()
            try:
                name = "run_000000.mcap" + (JOURNAL_SUFFIX if under_way else "")
                (run / name).write_bytes(content)
                result[_judge(run, written, under_way=under_way)] += 1
            finally:
                _remove(run)
    return dict(result)


def _record(run: Path, episodes: list[Episode], *, under_way: bool) -> bytes:
    """Return a file of episodes: a finished one, or one under way whose last episode has no end."""
    writer = RunWriter(run, FACTS, len(episodes), sync=False, reserve=0)
    for episode in episodes[:-1] if under_way else episodes:
        writer.write_episode(episode)
    if under_way:
        for step in episodes[-1].steps:
            writer.write_step(step)
        writer._release()  # as the kernel does for a process that was killed
    else:
        writer.close()
    (path,) = run.glob("*.mcap*")
    content = path.read_bytes()
    _remove(run)
    return content


def _remove(run: Path) -> None:
    for path in run.iterdir():
        path.unlink()
    run.rmdir()


def _judge(run: Path, written: list[Episode], *, under_way: bool) -> str:
    """Read the run in all ways, record on if a journal was left, and read again."""
    kept = 0
    for recover in (False, True) if under_way else (False,):
        try:
            if recover:
                RunWriter(run, FACTS, sync=False, reserve=0).close()
            for skip_bad in (False, True):
                episodes = list(RunReader(run, skip_bad))
                if not all(_is_true(episode, written[episode.index]) for episode in episodes):
                    return "untrue"
                if not _are_alike(load_arrays(run, skip_bad=skip_bad), episodes_to_arrays(episodes)):
                    return "untrue"
                kept += sum(len(episode.steps) for episode in episodes)
        except UserError:
            continue
    return "recovered true" if kept else "refused"


def _are_alike(loaded: EpisodeArrays, expected: EpisodeArrays) -> bool:
    """Whether the fast way to read found what the strict one did."""
    if not loaded.steps or not expected.steps:  # without steps, their sizes may be unknown
        return loaded.steps == expected.steps
    return same(loaded.observations, expected.observations) and same(loaded.actions, expected.actions)


def _is_true(episode: Episode, original: Episode) -> bool:
    """Whether an episode is the recorded one, or, where it was cut off, its beginning."""
    if episode.outcome == Outcome.RECOVERED:
        return same(episode.steps, original.steps[: len(episode.steps)])
    return same(episode, original)


def main() -> int:
    """Attack, print the counts, and return 1 where anything was untrue."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.attacks.journals", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="damaged files")
    parser.add_argument("--seed", type=int, default=0, help="where the damage lies follows from it")
    arguments = parser.parse_args()
    result = attack(arguments.count, arguments.seed)
    print(", ".join(f"{number} {name}" for name, number in result.items()))
    return 1 if result["untrue"] else 0


if __name__ == "__main__":
    sys.exit(main())
