"""The engine: bytes in, bytes out. It knows no Django and no task functions."""
