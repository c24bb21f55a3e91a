"""How good policies and data are: numbers, tables, plots and the report.

`convergence` measures policies on fresh contexts, side by side, and expertness, `scores` rates runs as
datasets, `run_summary` sums runs up, `report` writes the HTML page; `plots` draws.
"""
