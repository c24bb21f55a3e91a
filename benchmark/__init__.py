"""What is measured, and how: one module per subject, each with a `main(arguments)`; run by `python -m benchmark`."""
