"""Attacks at length on what must hold; the same in small is part of the tests."""
