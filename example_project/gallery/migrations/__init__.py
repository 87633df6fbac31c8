"""The tables of the gallery."""
