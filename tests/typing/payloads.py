"""The types that those examples use: a payload of one's own, and its serializer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    """What a queue of orders holds."""

    number: int


class OrderSerializer:
    """Fits ``Serializer[Order]`` by its methods alone."""

    def dumps(self, value: Order) -> bytes:
        """Return the number as text."""
        return str(value.number).encode()

    def loads(self, data: bytes) -> Order:
        """Return the order of that number."""
        return Order(int(data))


class HalfSerializer:
    """Cannot read what it writes."""

    def dumps(self, value: Order) -> bytes:
        """Return the number as text."""
        return str(value.number).encode()
