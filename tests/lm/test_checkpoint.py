"""What is checked of a checkpoint before it is loaded."""

from pathlib import Path

import pytest

from toolshift.core.errors import UsageError
from toolshift.lm.checkpoint import check_base


def test_an_adapter_without_weights_says_how_to_bring_them_back(tmp_path: Path) -> None:
    adapter = tmp_path / "model"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(UsageError, match=f"toolshift artifacts get {adapter}"):
        check_base(adapter, tmp_path)
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    check_base(adapter, tmp_path)
