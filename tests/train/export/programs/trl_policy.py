"""One step of TRL's GRPOTrainer in the environments of an exported package.

The trainer, its loop of tool calls and its environments are real; only what the model says is
scripted: of the two generations of each scene one plays the oracle and the other answers wrongly.
Prints the rewards as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import trl
from datasets import Dataset
from policies import WRONG, says
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from toolshift.train.export.scenes import read_scenes

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokenizer() -> PreTrainedTokenizerFast:
    """A token a byte, and the chat template of Qwen2.5."""
    names = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE({name: place for place, name in enumerate(names)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = (Path(trl.__file__).parent / "chat_templates/qwen2_5.jinja").read_text()
    return fast


class Scripted(trl.GRPOTrainer):
    """The trainer, with a model that says what the policies say."""

    scenes: Any = None
    count = 0
    given: list[list[float]] = []

    def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
        texts = [self.processing_class.decode(ids) for ids in prompt_ids]
        said = [self._line(place, text) for place, text in enumerate(texts)]
        ids = [self.processing_class(line + "<|im_end|>")["input_ids"] for line in said]
        return ids, None

    def _calculate_rewards(self, *given: Any, **named: Any) -> Any:
        rewards = super()._calculate_rewards(*given, **named)
        self.given.append(rewards.flatten().tolist())
        return rewards

    def _line(self, place: int, text: str) -> str:
        user = re.search(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", text, re.DOTALL)
        assert user is not None
        known = {self.scenes.scene(n).asks[0].text: n for n in range(self.count)}
        scene = self.scenes.scene(known[user[1]])
        turn = text[user.end() :].count("<|im_start|>assistant") - 1
        wrong = WRONG in text[user.end() :] if turn else place % 2 == 1
        said = says("wrong" if wrong else "oracle", scene, turn)
        if isinstance(said, str):
            return said
        call = json.dumps({"name": said[0], "arguments": said[1]})
        return f"<tool_call>\n{call}\n</tool_call>"


def main() -> None:
    package, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    module = import_module(package)
    made = module.load(count)
    words = tokenizer()
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
            num_attention_heads=1, num_key_value_heads=1, max_position_embeddings=65536,
            eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    arguments = trl.GRPOConfig(
        output_dir=folder, per_device_train_batch_size=2, num_generations=2, max_steps=count,
        max_completion_length=30000, report_to=[], logging_steps=1, save_strategy="no",
        use_cpu=True, shuffle_dataset=False, disable_tqdm=True, beta=0.0,
    )  # fmt: skip
    trainer = Scripted(
        model,
        args=arguments,
        processing_class=words,
        train_dataset=Dataset.from_list(made.rows),
        environment_factory=made.factories,
    )
    trainer.scenes, trainer.count = read_scenes(Path(str(module.__file__)).parent), count
    trainer.train()
    rows = [
        {"scene": number, "policy": policy, "reward": reward,
         "shifts": [f"{s.shift}:{s.severity}" for s in trainer.scenes.scene(number).shifts]}
        for number, pair in enumerate(trainer.given)
        for policy, reward in zip(("oracle", "wrong"), pair, strict=True)
    ]  # fmt: skip
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
