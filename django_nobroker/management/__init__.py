"""Management commands; each only parses its arguments."""
