"""Records PyTorch's answers of the layers and losses of backplane/nn.h: layers.safetensors.

Each case has its layer's state under its name ("linear.weight"), its inputs (x, and key, mask, target ...) and the
answer y; of a layer that updates buffers, what they are afterwards (after.running_mean). Run with PyTorch 2.9 or newer:
python3 record.py
"""
import torch
from torch import nn
from torch.nn import functional as F
from safetensors.torch import save_file

torch.manual_seed(7)
out = {}


def put(case, tensors):
    for name, t in tensors.items():
        out[f"{case}.{name}"] = t.detach().clone().contiguous()


def layer(case, module, *inputs, names=("x",), call=None):
    for p in module.parameters():
        nn.init.normal_(p, std=0.5)
    put(case, {k: v for k, v in module.state_dict().items()})
    put(case, dict(zip(names, inputs)))
    put(case, {"y": call(module) if call else module(*inputs)})
    put(case, {"after." + k: v for k, v in module.state_dict().items() if "running" in k or "batches" in k})


x = torch.randn
layer("linear", nn.Linear(5, 3), x(2, 4, 5))
layer("linear_plain", nn.Linear(5, 3, bias=False), x(4, 5))
layer("conv1d", nn.Conv1d(4, 6, 3, padding=1, stride=2), x(2, 4, 9))
layer("conv2d", nn.Conv2d(4, 6, (3, 2), padding=(1, 0), dilation=(1, 2), groups=2), x(2, 4, 7, 8))
layer("conv2d_alone", nn.Conv2d(3, 2, 3), x(3, 6, 6))
layer("conv3d", nn.Conv3d(2, 3, 2, bias=False), x(1, 2, 4, 5, 4))
layer("conv_transposed", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), x(2, 4, 5, 5))
bn = nn.BatchNorm2d(3)
bn.running_mean.normal_()
bn.running_var.uniform_(0.5, 2)
layer("batch_norm_eval", bn.eval(), x(4, 3, 5, 5))
layer("batch_norm_train", nn.BatchNorm1d(3, momentum=0.3), x(6, 3))
layer("layer_norm", nn.LayerNorm((3, 5)), x(2, 3, 5))
layer("layer_norm_plain", nn.LayerNorm(5, elementwise_affine=False, eps=1e-3), x(2, 3, 5))
layer("rms_norm", nn.RMSNorm(5), x(2, 3, 5))
layer("group_norm", nn.GroupNorm(2, 6), x(2, 6, 4, 3))
layer("embedding", nn.Embedding(7, 4), torch.randint(0, 7, (2, 5)))

q, k, v = x(2, 4, 8), x(2, 6, 8), x(2, 6, 8)
mha = lambda **kw: nn.MultiheadAttention(8, 2, batch_first=True, **kw)
layer("attention_self", mha(), q, call=lambda m: m(q, q, q, need_weights=False)[0])
layer("attention_cross", mha(), q, k, v, names=("x", "key", "value"), call=lambda m: m(q, k, v, need_weights=False)[0])
mask = torch.rand(4, 6) < 0.3
padding = torch.zeros(2, 6, dtype=torch.bool)
padding[1, 4:] = True
mask[:, 0] = False
layer("attention_masked", mha(bias=False), q, k, v, mask, padding, names=("x", "key", "value", "mask", "padding"),
      call=lambda m: m(q, k, v, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0])
causal = torch.triu(torch.full((4, 4), float("-inf")), 1)
layer("attention_causal", mha(), q, call=lambda m: m(q, q, q, attn_mask=causal, need_weights=False)[0])
pad4 = torch.tensor([[False] * 4, [False, False, True, True]])
layer("attention_causal_padded", mha(), q, pad4, names=("x", "padding"),
      call=lambda m: m(q, q, q, attn_mask=causal, key_padding_mask=pad4, need_weights=False)[0])
heads = x(4, 4, 4)
layer("attention_mask_per_head", mha(), q, heads, names=("x", "mask"),
      call=lambda m: m(q, q, q, attn_mask=heads, need_weights=False)[0])
enc = lambda **kw: nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True, **kw)
layer("encoder", enc(), q)
layer("encoder_norm_first", enc(activation="gelu", norm_first=True, bias=False), q)

for name, fn in {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"), "silu": F.silu,
                 "sigmoid": torch.sigmoid, "tanh": torch.tanh, "leaky_relu": F.leaky_relu, "elu": F.elu, "mish": F.mish,
                 "softplus": F.softplus, "hardswish": F.hardswish, "identity": lambda t: t}.items():
    t = x(3, 7) * 3
    put(f"activation_{name}", {"x": t, "y": fn(t)})


def loss(case, fn, t, target, **kw):
    put(f"loss_{case}", {"x": t, "target": target, "y": fn(t, target, **kw)})
    put(f"loss_{case}", {k: v for k, v in kw.items() if isinstance(v, torch.Tensor)})


a, b = x(4, 5), x(4, 5)
loss("mse", F.mse_loss, a, b)
loss("l1", F.l1_loss, a, b, reduction="sum")
loss("smooth_l1", F.smooth_l1_loss, a, b, beta=0.5)
loss("huber", F.huber_loss, a, b, delta=0.7, reduction="none")
loss("bce", F.binary_cross_entropy, torch.rand(4, 5), torch.rand(4, 5), weight=torch.rand(5))
loss("bce_with_logits", F.binary_cross_entropy_with_logits, a, torch.rand(4, 5), pos_weight=torch.rand(5))
loss("kl_div", F.kl_div, F.log_softmax(a, 1), F.softmax(b, 1), reduction="batchmean")
classes = torch.tensor([1, 4, 0, 2])
loss("nll", F.nll_loss, F.log_softmax(a, 1), classes, weight=torch.rand(5))
loss("cross_entropy", F.cross_entropy, a, classes, ignore_index=4, label_smoothing=0.1)
loss("cross_entropy_soft", F.cross_entropy, a, F.softmax(b, 1))
save_file(out, __file__.rsplit("/", 1)[0] + "/layers.safetensors" if "/" in __file__ else "layers.safetensors")
print(f"{len(out)} tensors")
