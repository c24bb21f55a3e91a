"""Runs for other programs: `minari.export_minari` writes a Minari dataset."""
