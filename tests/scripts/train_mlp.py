"""Train a perceptron on points of two spirals: AdamW, a cosine schedule with warm-up, autocast."""

import argparse
import json
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, Sampler


class Spirals(Dataset):
    """Points of three spirals, with noise; the class of a point is its spiral."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, size=count)
        radius = rng.uniform(0.1, 1.0, size=count)
        angle = radius * 5.0 + labels * 2.0 * math.pi / 3.0 + rng.normal(0.0, 0.15, size=count)
        points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        features = [points, points**2, np.sin(3.0 * points), np.cos(3.0 * points)]
        self.features = torch.from_numpy(np.concatenate(features, axis=1).astype(np.float32))
        self.labels = torch.from_numpy(labels.astype(np.int64))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]


class EpochSampler(Sampler):
    """An order that depends on the epoch alone, so that a run can be resumed."""

    def __init__(self, count):
        self.count = count
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = np.random.default_rng(1000 + self.epoch).permutation(self.count)
        return iter(order.tolist())

    def __len__(self):
        return self.count


class NumpyDropout(nn.Module):
    """Dropout whose masks come from NumPy: they are the same everywhere."""

    def __init__(self, p):
        super().__init__()
        self.p = p
        self.step = 0

    def extra_repr(self):
        return f"p={self.p}"

    def forward(self, x):
        if not self.training:
            return x
        rng = np.random.default_rng(5000 + self.step)
        keep = (rng.random(x.shape) >= self.p).astype(np.float32) / (1.0 - self.p)
        return x * torch.from_numpy(keep).to(x.device, x.dtype)


class MLP(nn.Module):
    def __init__(self, inputs=8, hidden=64, classes=3, depth=3, dropout=0.1):
        super().__init__()
        self.stem = nn.Linear(inputs, hidden)
        self.blocks = nn.ModuleList()
        for _ in range(depth - 1):
            block = nn.Sequential(
                nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.GELU(), NumpyDropout(dropout)
            )
            self.blocks.append(block)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def load_weights(model, path):
    weights = np.load(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct, total, loss_sum = 0, 0, 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=1) == y).sum().item()
        total += y.size(0)
    model.train()
    return correct / total, loss_sum / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--stop", type=int, default=None)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()

    torch.manual_seed(1337)
    device = torch.device(args.device)
    train_set, test_set = Spirals(640, seed=1), Spirals(256, seed=2)
    sampler = EpochSampler(len(train_set))
    train_loader = DataLoader(
        train_set, batch_size=64, sampler=sampler, drop_last=True, num_workers=args.workers
    )
    test_loader = DataLoader(test_set, batch_size=100, shuffle=False)

    model = MLP()
    load_weights(model, args.weights)
    model.to(device)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-6)

    def schedule(step):
        if step < 5:
            return (step + 1) / 5
        return 0.5 * (1.0 + math.cos(math.pi * (step - 5) / max(1, args.steps - 5)))

    scheduler = LambdaLR(optimizer, lr_lambda=schedule)
    step, losses, norms = 0, [], []
    if os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        step, losses, norms = state["step"], state["losses"], state["norms"]

    stop = args.steps if args.stop is None else args.stop
    while step < stop:
        epoch, first = divmod(step, len(train_loader))
        sampler.set_epoch(epoch)
        for number, (x, y) in enumerate(train_loader):
            if number < first:
                continue
            if step >= stop:
                break
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            for module in model.modules():
                if isinstance(module, NumpyDropout):
                    module.step = step
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            norms.append(norm.item())
            step += 1
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "step": step,
            "losses": losses,
            "norms": norms,
        },
        args.checkpoint,
    )
    accuracy, test_loss = evaluate(model, test_loader, device)
    print(f"step {step}: loss {losses[-1]:.4f}, test loss {test_loss:.4f}, accuracy {accuracy:.3f}")
    shapes = {name: list(p.shape) for name, p in model.state_dict().items()}
    result = {"losses": losses, "norms": norms, "test_loss": test_loss, "shapes": shapes}
    with open(args.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
