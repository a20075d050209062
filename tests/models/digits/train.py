"""Train a small convolutional classifier on scikit-learn's handwritten digits.

Run from anywhere, in an environment with torch, numpy, scikit-learn and
safetensors:

    python train.py          # train, export next to this file, then check
    python train.py --check  # only check the exported files

Exports weights.safetensors, images.npy, labels.npy and logits.npy; README.md
describes them. All random choices are seeded.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 20
HELD_OUT = 360
EPOCHS = 40
BATCH = 64
TARGET = 0.98


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def load_split():
    """Return train and held-out (images, labels), pixels scaled to [0, 1]."""
    data = load_digits()
    images = (data.images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = data.target.astype(np.int64)
    x, x_held, y, y_held = train_test_split(
        images, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED)
    # Indexing can leave unusual strides on the channel axis of size 1, which
    # PyTorch reads as channels-last and answers with another kernel. A C-order
    # copy has the strides that the saved file will have when it is loaded.
    return (x.copy(order="C"), y), (x_held.copy(order="C"), y_held)


def shift(images):
    """Move each image by -1, 0 or 1 pixel along each axis, filling with 0."""
    padded = F.pad(images, (1, 1, 1, 1))[:, 0]
    n = len(images)
    rows = torch.randint(0, 3, (n, 1, 1)) + torch.arange(8)[None, :, None]
    cols = torch.randint(0, 3, (n, 1, 1)) + torch.arange(8)[None, None, :]
    return padded[torch.arange(n)[:, None, None], rows, cols][:, None]


def train(x, y):
    """Train on x, y alone; the held-out images play no part here."""
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            moved = shift(x[batch])
            noisy = moved + 0.1 * torch.randn(moved.shape)
            loss = F.cross_entropy(model(noisy), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def accuracy(logits, labels):
    return float((logits.argmax(axis=1) == labels).mean())


def export(model, images, labels):
    with torch.no_grad():
        logits = model(torch.from_numpy(images)).numpy()
    if accuracy(logits, labels) < TARGET:
        raise SystemExit(f"held-out accuracy {accuracy(logits, labels):.4f} "
                         f"is below {TARGET}; nothing was written")
    weights = {k: v.contiguous() for k, v in model.state_dict().items()}
    save_file(weights, str(HERE / "weights.safetensors"))
    np.save(HERE / "images.npy", images)
    np.save(HERE / "labels.npy", labels)
    np.save(HERE / "logits.npy", logits)


def check():
    """Recompute the logits from the files alone and compare them."""
    model = Digits().eval()
    model.load_state_dict(load_file(str(HERE / "weights.safetensors")))
    images = np.load(HERE / "images.npy")
    labels = np.load(HERE / "labels.npy")
    expected = np.load(HERE / "logits.npy")
    with torch.no_grad():
        logits = model(torch.from_numpy(images)).numpy()
    worst = float(np.abs(logits - expected).max())
    right = int((logits.argmax(axis=1) == labels).sum())
    print(f"held-out accuracy {right}/{len(labels)} = "
          f"{accuracy(logits, labels):.4f}, "
          f"largest difference from logits.npy {worst:g}")
    if not worst <= 1e-6:
        raise SystemExit("recomputed logits differ from logits.npy")


def main():
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    if "--check" not in sys.argv[1:]:
        (x, y), (images, labels) = load_split()
        export(train(x, y), images, labels)
    check()


if __name__ == "__main__":
    main()
