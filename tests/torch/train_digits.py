"""What sdk/examples/train_digits.c trains on, and PyTorch's losses for it.

    python train_digits.py

Writes to tests/models/digits: train_images.npy (uint8 [1437, 1, 8, 8], grey
levels 0 to 16) and train_labels.npy (int64), the images that train.py does not
hold out; start.safetensors, new weights of seed 20; losses.npy (float64 [2, 200]),
the losses of the first 200 steps from those weights, each before its step: in
float64, and in float32. Two runs in float32 that round differently (as
PyTorch's own, with and without oneDNN) part by a relative 1e-4 after some 70
steps, so only the float64 ones can be compared over all 200. The
order of images is a shuffle of its own, written out below as in the C program,
so that both see the same batches. Needs torch, numpy, scikit-learn, safetensors.
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

DIGITS = Path(__file__).resolve().parents[1] / "models" / "digits"
sys.path.insert(0, str(DIGITS))
from train import Digits, load_split  # noqa: E402

BATCH, EPOCHS, RATE, DECAY, STEPS = 64, 30, 2e-3, 1e-2, 200
WORD = (1 << 64) - 1


class SplitMix:
    """The generator of Steele, Lea and Flood: 64 bits a call."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return z ^ (z >> 31)


def shuffled(n, epoch):
    """Fisher and Yates, from the end; the epoch is the seed."""
    order, random = list(range(n)), SplitMix(epoch)
    for i in range(n - 1, 0, -1):
        j = random.next() % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def rate(step, steps):
    """Half a cosine, from RATE to 0."""
    return RATE * 0.5 * (1 + math.cos(math.pi * step / steps))


def curve(state, images, labels, dtype):
    """The losses of STEPS steps, computed in a type."""
    model = Digits().to(dtype)
    model.load_state_dict(state)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    an_epoch = -(-len(labels) // BATCH)
    losses = []
    for step in range(STEPS):
        epoch, at = divmod(step, an_epoch)
        batch = shuffled(len(labels), epoch)[at * BATCH:(at + 1) * BATCH]
        optimizer.param_groups[0]["lr"] = rate(step, EPOCHS * an_epoch)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[batch].to(dtype)), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_num_threads(2)
    (x, y), _ = load_split()
    levels = np.round(x * 16).astype(np.uint8)
    np.save(DIGITS / "train_images.npy", levels)
    np.save(DIGITS / "train_labels.npy", y)
    torch.manual_seed(20)
    state = {name: t.clone() for name, t in Digits().state_dict().items()}
    save_file(state, DIGITS / "start.safetensors")
    images, labels = torch.from_numpy(levels).float() / 16, torch.from_numpy(y)
    losses = [curve(state, images, labels, dtype) for dtype in (torch.float64, torch.float32)]
    np.save(DIGITS / "losses.npy", np.array(losses))
    print(f"{STEPS} losses from {losses[0][0]:.4f} to {losses[0][-1]:.4f}")


main()
