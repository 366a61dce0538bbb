"""The layouts of exported weights: each file is one, named after it."""
