"""What `make` and `setup.py` run; standard library only, since nothing is installed yet when they start."""
