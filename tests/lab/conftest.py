"""Fixtures of the lab's tests."""

from train.conftest import model

__all__ = ["model"]
