"""The small models that tests of training share, a fresh one for each file."""

import pytest


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from train import tiny  # here, for it needs the extra of training

    return tiny.llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    from train import tiny

    return tiny.qwen(tmp_path_factory.mktemp("models") / "qwen")


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    from train import tiny

    return tiny.gemma(tmp_path_factory.mktemp("models") / "gemma")
