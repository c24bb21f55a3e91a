"""Damage to bytes, texts and trees of values, all drawn from a generator that is given."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import yaml

Rng = np.random.Generator
Damage = Callable[[bytearray, Rng], None]


def flip(content: bytearray, rng: Rng) -> None:
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))


def truncate(content: bytearray, rng: Rng) -> None:
    del content[int(rng.integers(len(content))) :]


def cut_out(content: bytearray, rng: Rng) -> None:
    start = int(rng.integers(len(content)))
    del content[start : start + int(rng.integers(1, 200))]


def zero(content: bytearray, rng: Rng) -> None:
    start = int(rng.integers(len(content)))
    end = min(len(content), start + int(rng.integers(1, 600)))
    content[start:end] = bytes(end - start)


def claim_much(content: bytearray, rng: Rng) -> None:
    """Put an enormous number somewhere, at best into a length."""
    size = int(rng.choice([4, 8]))
    value = int(rng.choice([2**31, 2**32 - 1, 2**20])) if size == 4 else int(rng.choice([2**40, 2**62]))
    start = int(rng.integers(max(1, len(content) - size)))
    content[start : start + size] = struct.pack("<I" if size == 4 else "<Q", value)


def repeat(content: bytearray, rng: Rng) -> None:
    start = int(rng.integers(len(content)))
    content[start:start] = content[start : start + int(rng.integers(1, 400))]


DAMAGES: tuple[Damage, ...] = (flip, truncate, cut_out, zero, claim_much, repeat)


def damaged(content: bytes, rng: Rng) -> bytes:
    """Return the content with one damage of a kind drawn at random."""
    changed = bytearray(content)
    DAMAGES[int(rng.integers(len(DAMAGES)))](changed, rng)
    return bytes(changed)


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


NASTY: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 3, 64, 65, 2**31, 2**63, 2**64, 10**12, 10**400, -(10**400)),
    *(0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
    *("", " ", "x" * 100_000, "a\0b", "[1", "{", "*a", "0x10", "1e400", "../../..", "/", "nan", "é" * 300, "\ud7ff"),
    *("os:system", "no_such_module:Name", "2020-13-45", "~", "%s%n", "a:b:c", "\x1b[31m", "..", "=", "<<"),
    *([], {}, [[]], {"a": 1}, [1] * 1000, ["x"] * 1000, [float("nan")] * 2, _deep(40), {"": {"": {"": None}}}),
)
# What is wrong with a document as a whole: bombs, depth, numbers without end, tags.
BOMBS: tuple[str, ...] = (
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{c}: &{c} [{','.join('*' + b for _ in range(9))}]\n" for b, c in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "a: &a {x: 1}\n"
    + "".join(
        f"{c}: &{c} {{<<: [{','.join('*' + b for _ in range(9))}]}}\n"
        for b, c in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "a: &a [*a]\n",
    "[" * 100_000,
    "{a: " * 20_000,
    "- " * 50_000,
    "? " * 50_000,
    "a: " + "9" * 100_000 + "\n",
    "a: " + "1:" * 5_000 + "1\n",
    "a: !!python/object/apply:os.system ['true']\n",
    *(f"a: !!{tag} x\n" for tag in ("int", "float", "bool", "timestamp", "binary", "set", "omap", "pairs", "null")),
    "a: 2020-99-99\n",
    "? [a]\n: b\n",
    "? {a: b}\n: c\n",
    "a: 1\na: 2\n",
    "a: |\n" + " x\n" * 50_000,
    "".join(f"k{number}: {number}\n" for number in range(20_000)),
    "plant: " + "x" * 300_000,
    "\t- a\n\t b",
    "%YAML 9.9\n---\na: 1\n",
    "--- a\n--- b\n",
    "a: 'unfinished",
    "\ufeff\u2028a: 1\u0085",
)


def nasty(rng: Rng) -> Any:
    """Return a value that nobody expects."""
    return copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for key, value in below for place in _places(value, (*path, key)))]


def twisted(tree: Any, rng: Rng) -> Any:
    """Return a copy of a tree of lists and maps in which something was replaced, left out, renamed or added."""
    tree = copy.deepcopy(tree)
    for _ in range(int(rng.integers(1, 3))):
        places = _places(tree)
        *path, last = places[int(rng.integers(len(places)))] or (None,)
        if last is None:
            tree = nasty(rng) if rng.random() < 0.1 else tree
            continue
        parent = tree
        for key in path:
            parent = parent[key]
        what = rng.random()
        if what < 0.7:
            parent[last] = nasty(rng)
        elif what < 0.8:
            del parent[last]
        elif isinstance(parent, dict):
            parent[str(nasty(rng))[:1000]] = parent.pop(last) if what < 0.9 else parent[last]
        else:
            parent.append(nasty(rng))
    return tree


def as_document(tree: Any, rng: Rng) -> bytes:
    """Return a tree as YAML or as JSON, which is YAML too; what one cannot write is written by the other."""
    if rng.random() < 0.5:
        try:
            return yaml.dump(tree, allow_unicode=True).encode(errors="surrogatepass")
        except (yaml.YAMLError, ValueError, RecursionError):
            pass
    return json.dumps(tree, default=str).encode(errors="surrogatepass")


def damaged_document(tree: Any, rng: Rng) -> bytes:
    """Return a document with something wrong in its values, in its bytes, or as a whole."""
    what = rng.random()
    if what < 0.6:
        return as_document(twisted(tree, rng), rng)
    if what < 0.9:
        return damaged(as_document(tree, rng), rng)
    bomb = BOMBS[int(rng.integers(len(BOMBS)))].encode()
    return bomb if rng.random() < 0.5 else as_document(tree, rng) + b"\n" + bomb
