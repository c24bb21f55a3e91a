"""Attacks on what the product reads: damaged files of each kind and nasty words, counted by what became of them."""
