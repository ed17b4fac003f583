"""What must be so after a task; a check is given the tools' module as the episode left it."""

from types import ModuleType


def kettle_refunded(shop: ModuleType) -> bool:
    """The kettle is refunded, and nothing else is."""
    return list(shop.REFUNDS) == ["O-1701"]
