"""metadata.yaml of a rosbag2 directory, replaced as a whole after each finished file.

It is written as JSON, which is YAML too: every YAML parser opens it, and ours opens it a hundred times faster when a
run has thousands of files.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcap.records import Metadata

from lift_ros.bags.contents import located
from lift_ros.bags.facts import check_facts
from lift_ros.bags.faults import BagError, Malformed
from lift_ros.bags.files import sync_directory, write_all
from lift_ros.bags.journal import FileSummary
from lift_ros.bags.mcap_records import RecordedTopic, file_bytes, read_metadata, read_summary, written
from lift_ros.distribution import distribution
from lift_ros.errors import UserError
from lift_ros.untrusted import brief, parse_json, parse_yaml, read_regular

FILE_NAME = "metadata.yaml"
VERSION = 9
_LARGEST = 2**27  # [bytes]; 100 000 files take a fifth of it
FACTS_KEY = "lift_facts"
CHECKSUM_KEY = "lift_facts_crc32"
METADATA_NAME = "lift_ros"  # of the record with the facts in each .mcap file
_ROSBAG2_NAME = "rosbag2"  # of the record in which rosbag2 keeps a copy of metadata.yaml
# What JSON leaves as it is, but YAML refuses or takes for the end of a line, and what has no bytes in UTF-8.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_UNSORTED = json.JSONEncoder(ensure_ascii=False).encode
_SORTED = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
_REMEDY = (
    f"Restore {FILE_NAME} from a copy, or delete it if the .mcap files beside it are good: a run is also read without "
    "it. Convert a bag of another kind with `ros2 bag convert` or `lift import`."
)


def _as_text(value: Any, encode: Callable[[Any], str] = _UNSORTED) -> str:
    """Return JSON that is YAML, too, whatever characters the value holds."""
    text = encode(value)
    return text if text.isascii() and "\x7f" not in text else _UNPRINTABLE.sub(_escaped, text)


def _escaped(character: re.Match[str]) -> str:
    return f"\\u{ord(character.group()):04x}"


def facts_as_text(facts: dict[str, Any]) -> dict[str, str]:
    """Return run facts as strings, which is all that rosbag2's custom data and MCAP's metadata hold."""
    try:
        encoded = _as_text(facts, _SORTED)
    except (TypeError, ValueError) as error:
        remedy = "Give numbers, texts, lists and maps."
        raise UserError(f"the run facts cannot be written as JSON: {error}. {remedy}") from error
    return {FACTS_KEY: encoded, CHECKSUM_KEY: f"{zlib.crc32(encoded.encode()):08x}"}


def facts_from_text(values: dict[str, Any], bag: Path) -> dict[str, Any]:
    """Return the run facts in custom data; none where the bag was not written by this package."""
    encoded = values.get(FACTS_KEY)
    if encoded is None:
        return {}
    if not isinstance(encoded, str) or values.get(CHECKSUM_KEY) != f"{zlib.crc32(encoded.encode()):08x}":
        raise BagError(f"the run facts ({FACTS_KEY}) do not match their checksum", bag=bag, remedy=_REMEDY)
    try:
        facts = parse_json(encoded)
    except ValueError as error:
        raise BagError(f"the run facts ({FACTS_KEY}) are no JSON ({error})", bag=bag, remedy=_REMEDY) from error
    if not isinstance(facts, dict):
        problem = f"the run facts ({FACTS_KEY}) are {brief(facts)}, and a JSON object was written"
        raise BagError(problem, bag=bag, remedy=_REMEDY)
    try:
        check_facts(facts)
    except UserError as error:
        raise BagError(f"of the run facts ({FACTS_KEY}), {error}", bag=bag, remedy=_REMEDY) from error
    return facts


def facts_of_files(paths: Iterable[Path]) -> dict[str, Any]:
    """Return the run facts that files carry, from the first whose are undamaged; none where a file is another's.

    What is wrong with a file but its facts is told where its episodes are read.
    """
    fault: BagError | None = None
    for path in paths:
        with suppress(Malformed):
            values = read_metadata(file_bytes(path, whole=False))
            try:
                return facts_from_text(values.get(METADATA_NAME, {}), path)
            except BagError as error:
                fault = fault or error
    if fault is not None:
        raise fault
    return {}


def records_of(facts: dict[str, Any]) -> dict[str, bytes]:
    """Return the metadata records of each file: the facts, and what rosbag2 looks for when it builds metadata.yaml."""
    information = {**RunMetadata(facts).head(), "relative_file_paths": [], "files": []}
    contents = {METADATA_NAME: facts_as_text(facts), _ROSBAG2_NAME: {"serialized_metadata": _as_text(information)}}
    return {name: written(Metadata(name, content)) for name, content in contents.items()}


@dataclass
class RunMetadata:
    """All that metadata.yaml says; it keeps the text of the files' entries so that saving costs little."""

    facts: dict[str, Any]
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)  # as the file has them
    files: set[str] = field(default_factory=set)
    unsaved: bool = False  # something was added since the last save
    _messages: int = 0  # of all files
    _times: tuple[int, int] | None = None  # of the first and of the last message
    _paths: bytearray = field(default_factory=bytearray)
    _entries: bytearray = field(default_factory=bytearray)

    @classmethod
    def load(cls, run: Path, facts: dict[str, Any]) -> RunMetadata:
        """Return what metadata.yaml of a run with these facts says.

        Where it does not describe each of its files, as after `ros2 bag reindex`, they are to be counted anew.
        """
        information = load_metadata(run)
        metadata = cls(facts)
        try:
            for entry in information["topics_with_message_count"]:
                topic = entry["topic_metadata"]
                qos = topic.get("offered_qos_profiles") or ""
                qos = qos if isinstance(qos, str) else json.dumps(qos)
                found = RecordedTopic(topic["name"], topic["type"], "", topic.get("type_description_hash", ""), qos)
                metadata.announce(found, int(entry["message_count"]))
            for entry in information.get("files") or []:
                first = int(entry["starting_time"]["nanoseconds_since_epoch"])
                last = first + int(entry["duration"]["nanoseconds"])
                metadata.add(FileSummary(str(entry["path"]), first, last, int(entry["message_count"]), {}))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BagError(f"{FILE_NAME} lacks {error}", bag=run, remedy=_REMEDY) from error
        counted = sum(topic["message_count"] for topic in metadata.topics.values())
        described = metadata.files == set(map(str, information["relative_file_paths"]))
        return metadata if described and metadata._messages == counted else cls(facts)

    def announce(self, topic: RecordedTopic, messages: int = 0) -> None:
        """Name a topic, if it is not named yet, and count so many more messages of it."""
        if topic.name not in self.topics:
            description = {
                "name": topic.name,
                "type": topic.type_name,
                "serialization_format": "cdr",
                "offered_qos_profiles": _qos(topic.qos),
                "type_description_hash": topic.type_hash,
            }
            self.topics[topic.name] = {"topic_metadata": description, "message_count": 0}
        self.topics[topic.name]["message_count"] += messages

    def add(self, summary: FileSummary) -> None:
        """Name one more finished file and its topics."""
        self.unsaved = True
        self.files.add(summary.name)
        self._messages += summary.messages
        for topic, count in summary.counts.items():
            self.announce(topic, count)
        if summary.messages:
            first, last = self._times or (summary.first_time, summary.last_time)
            self._times = min(first, summary.first_time), max(last, summary.last_time)
        period = _period(summary.first_time, summary.last_time)
        entry = {"path": summary.name, **period, "message_count": summary.messages}
        separator = b",\n    " if self._paths else b"\n    "
        self._paths += separator + _as_text(summary.name).encode()
        self._entries += separator + _as_text(entry).encode()

    def head(self) -> dict[str, Any]:
        """Return all that does not grow with the number of files."""
        return {
            "version": VERSION,
            "storage_identifier": "mcap",
            **_period(*(self._times or (0, 0))),
            "message_count": sum(topic["message_count"] for topic in self.topics.values()),
            "compression_format": "",
            "compression_mode": "",
            "ros_distro": distribution(),
            "custom_data": facts_as_text(self.facts),
            "topics_with_message_count": list(self.topics.values()),
        }

    def _content(self) -> list[bytes | bytearray]:
        """Return the file's content in pieces, of which those that grow with the run are kept ready."""
        lines = [f'  "{key}": {_as_text(value)},\n' for key, value in self.head().items()]
        start = '{"rosbag2_bagfile_information": {\n' + "".join(lines) + '  "relative_file_paths": ['
        return [start.encode(), self._paths, b'],\n  "files": [', self._entries, b"]\n}}\n"]

    def save(self, run: Path, *, sync: bool) -> None:
        """Replace metadata.yaml atomically."""
        temporary = run / f".{FILE_NAME}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            pieces = self._content()
            write_all(descriptor, pieces, sum(map(len, pieces)))
            if sync:
                os.fsync(descriptor)
        except OSError:
            temporary.unlink()  # a full disk needs its space
            raise
        finally:
            os.close(descriptor)
        os.rename(temporary, run / FILE_NAME)
        if sync:
            sync_directory(run)
        self.unsaved = False


def _period(first: int, last: int) -> dict[str, Any]:
    return {"starting_time": {"nanoseconds_since_epoch": first}, "duration": {"nanoseconds": last - first}}


def _qos(profiles: str) -> list[Any]:
    """Return QoS profiles as a list, which is how version 9 has them; none where the text does not hold one."""
    try:
        content = parse(profiles.encode())
    except ValueError:
        return []
    return content if isinstance(content, list) else []


def summarise_file(path: Path) -> FileSummary:
    """Return what metadata.yaml says about a finished file, from the file itself."""
    with located(path):
        announced, statistics = read_summary(file_bytes(path, whole=False))
        if statistics is None:
            raise Malformed("it has no index")
    counts = {topic: statistics.channel_message_counts.get(number, 0) for number, topic in announced.topics.items()}
    times = statistics.message_start_time, statistics.message_end_time
    return FileSummary(path.name, *times, statistics.message_count, counts)


def load_metadata(run: Path) -> dict[str, Any]:
    """Return `rosbag2_bagfile_information` of a run; `relative_file_paths` and `custom_data` are there."""

    def refuse(problem: str) -> BagError:
        return BagError(f"{FILE_NAME} {problem}", bag=run, remedy=_REMEDY)

    try:
        content = parse(read_regular(run / FILE_NAME, _LARGEST))
    except OSError as error:
        raise refuse(f"cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise refuse(f"is no YAML ({error})") from error
    information = content.get("rosbag2_bagfile_information") if isinstance(content, dict) else None
    if not isinstance(information, dict):
        raise refuse("has no rosbag2_bagfile_information")
    version, storage = information.get("version"), information.get("storage_identifier")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise refuse(f"has format version {brief(version)}; versions 1 to {VERSION} are known")
    if storage != "mcap":
        raise refuse(f"says that its storage is {brief(storage)}; a run is stored as mcap")
    for key, kind in (("relative_file_paths", list), ("custom_data", dict)):
        information[key] = information.get(key) or kind()
        if not isinstance(information[key], kind):
            raise refuse(f"has {key} that is no {kind.__name__}")
    return information


def parse(data: bytes) -> Any:
    """Parse JSON, or else YAML; raises ValueError where it is neither."""
    try:
        return parse_json(data)
    except ValueError:
        return parse_yaml(data)
