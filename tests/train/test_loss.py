"""The loss of a batch: every way of computing it gives the same, and the same gradients."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from train import tiny  # noqa: E402
from train.tiny import full, lora  # noqa: E402

from toolshift.lm import dtype as arithmetic  # noqa: E402
from toolshift.train import loss as loss_module  # noqa: E402
from toolshift.train.batches import Encoder, collate, encode_rows  # noqa: E402
from toolshift.train.loss import add_loss, use_plain_attention  # noqa: E402
from toolshift.train.model import find_base, load  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


def loss_and_gradients(model, *, share, rows, plain_attention=True, precision="float32"):
    """The loss of one batch, and its gradients, by one of the ways of computing them."""
    settings = lora(model, precision=precision)
    base = find_base(settings)
    loaded = load(settings, base)
    with torch.no_grad():
        for name, weight in loaded.named_parameters():
            if "lora_B" in name:  # zeros at first, which would hide the gradients of lora_A
                weight.normal_(std=0.05, generator=torch.Generator().manual_seed(len(name)))
    inner = loaded.get_base_model()
    add_loss(inner, share)
    if plain_attention:
        use_plain_attention(inner)
    encoder = Encoder(base.tokenizer, base.template, "description-first", base.tool_role)
    batch = collate(encode_rows(rows, encoder))
    batch.pop("tokens")
    loss = loaded(**batch)
    loss.backward()
    gradients = [weight.grad for weight in loaded.parameters() if weight.requires_grad]
    return loss.item(), torch.cat([each.float().flatten() for each in gradients])


def reference(model, rows):
    """The same by transformers alone: logits of every token, and no batch."""
    settings = lora(model, precision="float32")
    base = find_base(settings)
    loaded = load(settings, base)
    with torch.no_grad():
        for name, weight in loaded.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.05, generator=torch.Generator().manual_seed(len(name)))
    encoder = Encoder(base.tokenizer, base.template, "description-first", base.tool_role)
    total = 0.0
    for example in encode_rows(rows, encoder):
        ids = torch.tensor(example.tokens[None].astype("int64"))
        logits = loaded(input_ids=ids).logits[0, :-1].log_softmax(dim=-1)
        chosen = logits.gather(1, ids[0, 1:, None])[:, 0]
        total = total - (chosen * torch.tensor(example.weights[1:])).sum()
    total.backward()
    gradients = [weight.grad for weight in loaded.parameters() if weight.requires_grad]
    return total.item(), torch.cat([each.flatten() for each in gradients])


def test_attention_weights_that_are_not_kept_are_computed_again(model, monkeypatch):
    kept = loss_and_gradients(model, share=True, rows=tiny.rows()[:4])
    again, attend = [], loss_module._attend

    def count(*args):
        again.append(torch.is_grad_enabled())
        return attend(*args)

    monkeypatch.setattr(loss_module, "_attend", count)
    loss_and_gradients(model, share=True, rows=tiny.rows()[:4])
    once = len(again)
    monkeypatch.setattr(loss_module, "MAX_KEPT", 0)
    loss, gradients = loss_and_gradients(model, share=True, rows=tiny.rows()[:4])
    assert len(again) > 2 * once  # forward as before, and backward once more
    assert loss == kept[0]
    assert torch.equal(gradients, kept[1])


@pytest.mark.parametrize("family", ["llama", "qwen", "gemma"])
def test_all_ways_give_the_same_loss_and_gradients(family, model, qwen, gemma):
    folder, rows = {"llama": model, "qwen": qwen, "gemma": gemma}[family], tiny.rows()[:4]
    loss, gradients = reference(folder, rows)
    assert gradients.norm() > 1
    for share in (False, True):
        for plain in (False,) if family == "gemma" else (False, True):
            got, slope = loss_and_gradients(folder, share=share, rows=rows, plain_attention=plain)
            assert got == pytest.approx(loss, rel=1e-5)
            assert (slope - gradients).norm() < 1e-4 * gradients.norm()


def test_a_shared_opening_is_really_computed_once(model):
    seen = []
    settings = lora(model, precision="float32")
    base = find_base(settings)
    inner = load(settings, base).get_base_model()
    inner.model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(tuple(kwargs["input_ids"].shape)),
        with_kwargs=True,
    )
    encoder = Encoder(base.tokenizer, base.template, "description-first", base.tool_role)
    batch = collate(encode_rows(tiny.rows()[:4], encoder))
    batch.pop("tokens")
    add_loss(inner)
    inner(**batch)
    width, shared = batch["input_ids"].shape[1], batch["shared"]
    assert seen == [(1, shared), (4, width - shared)]
    assert shared > 100


def test_the_layout_of_batches_changes_nothing(model):
    rows = tiny.rows()[:4]
    whole, slope = loss_and_gradients(model, share=True, rows=rows)
    parts = [loss_and_gradients(model, share=True, rows=[row]) for row in reversed(rows)]
    assert sum(loss for loss, _ in parts) == pytest.approx(whole, rel=1e-5)
    assert (sum(part for _, part in parts) - slope).norm() < 1e-4 * slope.norm()


def test_a_head_that_is_more_than_a_product_is_left_to_the_model(model):
    rows, settings = tiny.rows()[:2], full(model)
    base = find_base(settings)
    encoder = Encoder(base.tokenizer, base.template, "description-first", base.tool_role)
    batch = collate(encode_rows(rows, encoder))
    batch.pop("tokens")
    found = {}
    for name in ("plain", "odd"):
        loaded = load(settings, base)
        loaded.config.logit_scale = 1.0 if name == "odd" else None
        add_loss(loaded)
        found[name] = loaded(**batch).item()
    assert found["odd"] == pytest.approx(found["plain"], rel=1e-5)


@pytest.mark.parametrize("native", [True, False])
def test_the_adapter_computes_in_the_type_of_the_model_and_is_kept_exact(
    model, native, monkeypatch
):
    monkeypatch.setattr(arithmetic, "_has_bfloat16", lambda: native)
    settings = lora(model)
    loaded = load(settings, find_base(settings))
    trained = [weight for weight in loaded.parameters() if weight.requires_grad]
    frozen = [weight for weight in loaded.parameters() if not weight.requires_grad]
    assert {weight.dtype for weight in trained} == {torch.float32}
    assert {weight.dtype for weight in frozen} == {torch.bfloat16 if native else torch.float32}
    assert all(torch.equal(weight, weight.to(torch.bfloat16).float()) for weight in frozen)
    rows = tiny.rows()[:4]
    exact, _ = loss_and_gradients(model, share=True, rows=rows)
    rounded, _ = loss_and_gradients(model, share=True, rows=rows, precision="bfloat16")
    assert rounded == pytest.approx(exact, rel=2e-3)
    assert rounded != exact
