"""Train graph attention on a random graph: scatter, index_add, boolean masks, residual features."""

import argparse
import json
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, EDGES, FEATURES, CLASSES = 400, 1600, 60, 5


class Attention(nn.Module):
    def __init__(self, inputs, outputs, heads):
        super().__init__()
        self.heads, self.outputs = heads, outputs
        self.linear = nn.Linear(inputs, heads * outputs, bias=False)
        self.source = nn.Linear(outputs, 1, bias=False)
        self.target = nn.Linear(outputs, 1, bias=False)
        self.bias = nn.Parameter(torch.Tensor(heads * outputs))

    def forward(self, x, edges):
        source, target = edges
        h = self.linear(x).view(-1, self.heads, self.outputs)
        score = self.source(h).squeeze(-1)[source] + self.target(h).squeeze(-1)[target]
        score = F.leaky_relu(score, 0.2)
        place = target.unsqueeze(-1).expand_as(score)
        largest = torch.full((x.size(0), self.heads), -1e9).scatter_reduce(
            0, place, score.detach(), reduce="amax"
        )
        weight = (score - largest.index_select(0, target)).exp()
        total = torch.zeros(x.size(0), self.heads).scatter_add_(0, place, weight)
        weight = weight / (total.index_select(0, target) + 1e-16)
        messages = h.index_select(0, source) * weight.unsqueeze(-1)
        made = torch.zeros_like(h).index_add_(0, target, messages)
        return made.flatten(1) + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Attention(FEATURES, 8, 4)
        self.second = Attention(32, CLASSES, 1)
        self.skip = nn.Linear(FEATURES, CLASSES)

    def forward(self, x, edges):
        h = F.elu(self.first(x, edges))
        count = torch.bincount(edges[1], minlength=x.size(0)).clamp(min=1)
        mean = torch.zeros_like(h).scatter_reduce(
            0, edges[1].view(-1, 1).expand(-1, h.size(1)), h[edges[0]], "mean", include_self=False
        )
        h = h + mean / count.sqrt().unsqueeze(1)
        return self.second(h, edges) + self.skip(x)


def graph():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, NODES)
    features = (rng.random((NODES, FEATURES)) < 0.1).astype(np.float64)
    features[np.arange(NODES), labels] += rng.random(NODES) < 0.6
    edges = rng.integers(0, NODES, (2, EDGES))
    loops = np.stack([np.arange(NODES)] * 2)
    edges = torch.LongTensor(np.concatenate([edges, loops], 1))
    return torch.Tensor(features), torch.LongTensor(labels), edges


def load_weights(model, path):
    weights = np.load(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--stop", type=int, default=None)
    args = parser.parse_args()

    x, labels, edges = graph()
    x = F.normalize(x, p=1, dim=1)
    train = torch.zeros(NODES, dtype=torch.bool)
    train[: NODES // 2] = True
    model = nn.DataParallel(Net()).module
    load_weights(model, args.weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    step, losses, norms = 0, [], []
    if os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, losses, norms = state["step"], state["losses"], state["norms"]

    stop = args.steps if args.stop is None else args.stop
    while step < stop:
        out = model(x, edges)
        near = torch.cdist(out[train][:60], out[train][60:100])
        same = labels[train][:60, None] == labels[train][60:100]
        loss = F.cross_entropy(out[train], labels[train]) + 0.01 * near[same].mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
        step += 1
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "losses": losses,
            "norms": norms,
        },
        args.checkpoint,
    )
    model.eval()
    with torch.no_grad():
        out = model(x, edges)
        test_loss = F.cross_entropy(out[~train], labels[~train]).item()
        accuracy = (out.argmax(-1) == labels)[~train].float().mean().item()
    print(f"step {step}: loss {losses[-1]:.4f}, test {test_loss:.4f}, accuracy {accuracy:.3f}")
    shapes = {name: list(p.shape) for name, p in model.state_dict().items()}
    result = {"losses": losses, "norms": norms, "test_loss": test_loss, "shapes": shapes}
    with open(args.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
