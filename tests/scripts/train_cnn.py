"""Train a convolutional network on drawn shapes: SGD with momentum, OneCycleLR, GradScaler."""

import argparse
import json
import os

import numpy as np
import torch
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def draw(count, seed, size=16):
    """Pictures of 4 kinds: bars across, bars down, discs and crosses, with noise."""
    rng = np.random.default_rng(seed)
    images = rng.normal(0.0, 0.3, size=(count, 1, size, size)).astype(np.float32)
    labels = rng.integers(0, 4, size=count)
    rows, columns = np.mgrid[0:size, 0:size]
    for i in range(count):
        y, x = rng.integers(4, size - 4, size=2)
        near_y, near_x = np.abs(rows - y) <= 1, np.abs(columns - x) <= 1
        disc = (rows - y) ** 2 + (columns - x) ** 2 <= 9
        kinds = [near_y, near_x, disc, near_y | near_x]
        images[i, 0] += kinds[labels[i]]
    return torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64))


class Block(nn.Module):
    """Two convolutions beside a connection that skips them."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.skip(x))


class Net(nn.Module):
    def __init__(self, classes=4, width=8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.layer1 = Block(width, width)
        self.layer2 = Block(width, 2 * width, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = self.stem(x)
        x = self.layer2(self.layer1(x))
        x = torch.flatten(self.pool(x), 1)
        return self.fc(x)


def load_weights(model, path):
    weights = np.load(path)
    state = model.state_dict()
    for name in state:
        if name in weights:
            state[name] = torch.from_numpy(weights[name])
    model.load_state_dict(state)


def test(model, device, loader, criterion):
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += criterion(output, target).item() * len(data)
            prediction = output.argmax(dim=1, keepdim=True)
            correct += prediction.eq(target.view_as(prediction)).sum().item()
    model.train()
    return test_loss / len(loader.dataset), correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--stop", type=int, default=None)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()

    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {"num_workers": args.workers, "pin_memory": use_cuda}
    train_set = TensorDataset(*draw(640, seed=3))
    test_set = TensorDataset(*draw(96, seed=4))
    train_loader = DataLoader(train_set, batch_size=64, shuffle=False, **kwargs)
    test_loader = DataLoader(test_set, batch_size=50, **kwargs)

    model = Net().to(device)
    load_weights(model, args.weights)
    compiled = torch.compile(model) if use_cuda else model
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=args.steps)
    scaler = GradScaler(device.type, init_scale=1024.0, growth_interval=20)

    step, losses, norms = 0, [], []
    if os.path.isfile(args.checkpoint):
        checkpoint = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        scaler.load_state_dict(checkpoint["scaler"])
        step, losses, norms = checkpoint["step"], checkpoint["losses"], checkpoint["norms"]

    stop = args.steps if args.stop is None else args.stop
    model.train()
    while step < stop:
        skipped = step % len(train_loader)
        for batch_idx, (data, target) in enumerate(train_loader):
            if batch_idx < skipped or step >= stop:
                continue
            data = data.to(device, non_blocking=True, memory_format=torch.channels_last)
            target = target.to(device, non_blocking=True)
            optimizer.zero_grad()
            with autocast(device_type=device.type, dtype=torch.bfloat16):
                output = compiled(data)
                loss = criterion(output, target)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            losses.append(loss.item())
            norms.append(float(norm))
            step += 1
    checkpoint = {
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "step": step,
        "losses": losses,
        "norms": norms,
    }
    torch.save(checkpoint, args.checkpoint)
    test_loss, accuracy = test(model, device, test_loader, criterion)
    print(f"step {step}: loss {losses[-1]:.4f}, test loss {test_loss:.4f}, accuracy {accuracy:.3f}")
    shapes = {name: list(value.shape) for name, value in model.state_dict().items()}
    with open(args.out, "w") as file:
        json.dump(
            {"losses": losses, "norms": norms, "test_loss": test_loss, "shapes": shapes}, file
        )


if __name__ == "__main__":
    main()
