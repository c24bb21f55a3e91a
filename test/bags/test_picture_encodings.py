"""Pictures of every encoding survive in a run: for the strict reader, the fast loader and other people's readers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

from lift_ros.array_types import Picture
from lift_ros.bags import RunWriter, episodes_to_arrays, load_arrays, read_run
from lift_ros.bags.mcap_records import file_bytes
from lift_ros.bags.ordinary import Locator
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, same
from lift_ros.errors import UserError
from lift_ros.messages.errors import MessageError
from lift_ros.messages.records import encode_step
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat

every_encoding = pytest.mark.parametrize("encoding", ENCODINGS)


@pytest.fixture
def no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test fail where an episode is not loaded the fast way."""

    def refuse(self: RunReader, index: int) -> Episode:
        raise AssertionError(f"episode {index} was read the slow way")

    monkeypatch.setattr(RunReader, "episode", refuse)


def pictures_of(episodes: list[Episode]) -> Picture:
    return np.stack([step.image for episode in episodes for step in episode.steps if step.image is not None])


def picture_in(message: Any) -> Picture:
    """Return the picture of a decoded `sensor_msgs/Image`, by what its own fields say."""
    assert not message.is_bigendian
    dtype, channels = ENCODINGS[message.encoding]
    assert message.step == message.width * channels * dtype.itemsize
    shape = (message.height, message.width, channels)[: 2 if channels == 1 else 3]
    return np.frombuffer(bytes(message.data), dtype.newbyteorder("<")).reshape(shape)


def record(path: Path, *episodes: Episode) -> None:
    with RunWriter(path, {}, sync=False, reserve=0) as writer:
        for episode in episodes:
            writer.write_episode(episode)


@every_encoding
def test_the_strict_reader_returns_what_was_written(tmp_path: Path, encoding: str) -> None:
    written = write_run(tmp_path / "run", image=True, encoding=encoding)
    assert same(read_run(tmp_path / "run"), written)


@every_encoding
@pytest.mark.parametrize("per_file", [1, 3])
@pytest.mark.usefixtures("no_reader")
def test_the_fast_loader_returns_what_was_written(tmp_path: Path, encoding: str, per_file: int) -> None:
    written = write_run(tmp_path / "run", image=True, encoding=encoding, per_file=per_file)
    images = load_arrays(tmp_path / "run", images=True).images
    assert images is not None
    assert same(images, pictures_of(written))
    assert images.shape == (12, *PictureFormat(5, 4, encoding).shape)
    assert same(images, episodes_to_arrays(written, images=True).images)


@every_encoding
def test_rosbags_returns_what_was_written(tmp_path: Path, encoding: str) -> None:
    written = write_run(tmp_path / "run", image=True, encoding=encoding)
    with AnyReader([tmp_path / "run"]) as reader:
        found = [reader.deserialize(data, connection.msgtype) for connection, _, data in reader.messages()]
    steps = [message for message in found if hasattr(message, "image")]
    ends = [message for message in found if hasattr(message, "final_image")]
    assert same(np.stack([picture_in(message.image) for message in steps]), pictures_of(written))
    for message, episode in zip(ends, written, strict=True):
        assert same(picture_in(message.final_image), episode.final_image)


@every_encoding
def test_mcap_returns_what_was_written(tmp_path: Path, encoding: str) -> None:
    written = write_run(tmp_path / "run", 1, image=True, encoding=encoding)
    with (tmp_path / "run" / "run_000000.mcap").open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        found = [message for _, _, _, message in reader.iter_decoded_messages(topics=["/lift/step"])]
    assert same(np.stack([picture_in(message.image) for message in found]), pictures_of(written))


@pytest.mark.usefixtures("no_reader")
def test_a_run_without_pictures_gives_none_the_fast_way(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    assert load_arrays(tmp_path / "run", images=True).images is None


@pytest.mark.parametrize("number", [0, 2])
def test_a_picture_of_another_encoding_among_the_others_is_refused(tmp_path: Path, number: int) -> None:
    episode = sample_episode(0, image=True)
    episode.steps[number].image = np.zeros((5, 4, 3), np.uint16)
    record(tmp_path / "run", episode)
    assert same(read_run(tmp_path / "run"), [episode])
    with pytest.raises(UserError, match=r"different formats: 4×5 rgb(8|16), 4×5 rgb(8|16)"):
        load_arrays(tmp_path / "run", images=True)
    assert load_arrays(tmp_path / "run").steps == 4


def test_runs_whose_pictures_differ_are_not_mixed(tmp_path: Path) -> None:
    write_run(tmp_path / "bytes", 1, image=True, encoding="mono8")
    write_run(tmp_path / "floats", 1, image=True, encoding="32FC1")
    with pytest.raises(UserError, match="4×5 mono8, 4×5 32FC1; load their runs apart"):
        load_arrays([tmp_path / "bytes", tmp_path / "floats"], images=True)


def test_a_step_without_a_picture_among_the_others_is_refused(tmp_path: Path) -> None:
    episode = sample_episode(0, image=True)
    episode.steps[2].image = None
    record(tmp_path / "run", episode)
    with pytest.raises(UserError, match="1 of 4 steps have no image"):
        load_arrays(tmp_path / "run", images=True)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_floats_that_are_not_finite_are_neither_written_nor_loaded(tmp_path: Path, value: float) -> None:
    episode = sample_episode(0, image=True, encoding="32FC1")
    bad = replace(episode.steps[1], image=np.full((5, 4), value, np.float32))
    with pytest.raises(MessageError, match="NaN or infinity"):
        record(tmp_path / "refused", replace(episode, steps=[episode.steps[0], bad]))
    marked = replace(bad, image=np.full((5, 4), 7.0, np.float32))
    forged = encode_step(marked).replace(marked.image.tobytes(), bad.image.tobytes())  # type: ignore[union-attr]
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for step in episode.steps:
            writer.write_step(step, forged if step.index == 1 else None)
        writer.finish_episode(episode)
    with pytest.raises(UserError, match=r"step 1.*NaN or infinity"):
        load_arrays(tmp_path / "run", images=True)


def test_rows_with_gaps_are_left_to_the_strict_reader(tmp_path: Path) -> None:
    """Black pictures look alike wherever they are cut, so the head alone says where rows end."""
    episode = sample_episode(0, image=True)
    for step in episode.steps:
        step.image = np.zeros((5, 4, 3), np.uint8)
    plain = encode_step(episode.steps[0])
    assert plain.count((12).to_bytes(4, "little") + (60).to_bytes(4, "little") + bytes(60)) == 1
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for step in episode.steps:
            data = encode_step(step)
            head = data[:-68]
            wide = head + (16).to_bytes(4, "little") + (80).to_bytes(4, "little") + bytes(80)
            writer.write_step(step, wide)
        writer.finish_episode(episode)
    assert same(load_arrays(tmp_path / "run", images=True).images, pictures_of([episode]))


@pytest.mark.usefixtures("no_reader")
def test_without_pictures_nothing_is_held_that_is_as_large_as_one(tmp_path: Path) -> None:
    episode = sample_episode(0)
    large = np.zeros((200, 300, 3), np.uint8)
    for step in episode.steps:
        step.image = large
    episode.final_image = large
    record(tmp_path / "run", episode)
    (found,) = Locator((), images=False).locate(file_bytes(tmp_path / "run" / "run_000000.mcap", whole=True))
    assert len(found.end) + found.steps.nbytes < large.nbytes / 5
    assert same(load_arrays(tmp_path / "run").goals, episode.goal[None])
