"""Train a small GPT on text that follows a rule: AdamW by groups, warm-up, accumulation."""

import argparse
import json
import math
import os
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 48
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32
    bias: bool = True


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head = config.n_head
        self.n_embd = config.n_embd

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                drop=nn.Dropout(0.0),
                h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                ln_f=nn.LayerNorm(config.n_embd, bias=config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight  # weight tying
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        _, t = idx.size()
        assert t <= self.config.block_size
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        logits = self.lm_head(x)
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self, weight_decay, learning_rate, betas):
        params = {name: p for name, p in self.named_parameters() if p.requires_grad}
        decay = [p for p in params.values() if p.dim() >= 2]
        nodecay = [p for p in params.values() if p.dim() < 2]
        groups = [
            {"params": decay, "weight_decay": weight_decay},
            {"params": nodecay, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas)


class Tokens(Dataset):
    """Windows of a text in which the next token follows from the last one, mostly."""

    def __init__(self, count, block_size, vocab_size, seed):
        rng = np.random.default_rng(seed)
        tokens = [1]
        for _ in range(count * block_size):
            ruled = (5 * tokens[-1] + 7) % vocab_size
            tokens.append(int(rng.integers(vocab_size)) if rng.random() < 0.1 else ruled)
        self.tokens = np.array(tokens, dtype=np.int64)
        self.count, self.block_size = count, block_size

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        start = i * self.block_size
        window = torch.from_numpy(self.tokens[start : start + self.block_size + 1])
        return window[:-1], window[1:]


def get_lr(it, warmup, total, learning_rate=3e-3, min_lr=3e-4):
    if it < warmup:
        return learning_rate * (it + 1) / (warmup + 1)
    ratio = (it - warmup) / max(1, total - warmup)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoint", default="ckpt.pt")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--stop", type=int, default=None)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()

    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device_type = "cuda" if "cuda" in args.device else "cpu"
    ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}["bfloat16"]
    ctx = (
        nullcontext()
        if ptdtype == torch.float32
        else torch.amp.autocast(device_type=device_type, dtype=ptdtype)
    )
    config = GPTConfig()
    model = GPT(config)
    weights = np.load(args.weights)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.from_numpy(weights[name]))
    model.to(args.device)
    scaler = torch.amp.GradScaler(device_type, enabled=(ptdtype == torch.float16))
    optimizer = model.configure_optimizers(0.1, 3e-3, (0.9, 0.95))
    accumulation, clip, warmup = 2, 1.0, 8
    train_data = Tokens(200, config.block_size, config.vocab_size, seed=7)
    val_data = Tokens(32, config.block_size, config.vocab_size, seed=8)
    loader = DataLoader(train_data, batch_size=8, num_workers=args.workers, drop_last=True)

    it, losses, norms = 0, [], []
    if os.path.exists(args.checkpoint):
        checkpoint = torch.load(args.checkpoint, map_location=args.device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        it, losses, norms = checkpoint["iter_num"], checkpoint["losses"], checkpoint["norms"]

    def batches(first):
        position = 0
        while True:
            for batch in loader:
                if position >= first:
                    yield batch
                position += 1

    @torch.no_grad()
    def estimate_loss():
        model.eval()
        total = []
        for X, Y in DataLoader(val_data, batch_size=16):
            with ctx:
                _, loss = model(X.to(args.device), Y.to(args.device))
            total.append(loss.item())
        model.train()
        return sum(total) / len(total)

    stop = args.steps if args.stop is None else args.stop
    stream = batches(it * accumulation)
    while it < stop:
        lr = get_lr(it, warmup, args.steps)
        for param_group in optimizer.param_groups:
            param_group["lr"] = lr
        lossf = 0.0
        for _ in range(accumulation):
            X, Y = next(stream)
            X = X.to(args.device, non_blocking=True)
            Y = Y.to(args.device, non_blocking=True)
            with ctx:
                _, loss = model(X, Y)
                loss = loss / accumulation
            scaler.scale(loss).backward()
            lossf += loss.item()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(lossf)
        norms.append(norm.item())
        it += 1
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "model_args": vars(config),
        "iter_num": it,
        "losses": losses,
        "norms": norms,
    }
    torch.save(checkpoint, args.checkpoint)
    val_loss = estimate_loss()
    print(f"step {it}: train loss {losses[-1]:.4f}, val loss {val_loss:.4f}")
    shapes = {name: list(p.shape) for name, p in model.state_dict().items()}
    with open(args.out, "w") as file:
        json.dump({"losses": losses, "norms": norms, "test_loss": val_loss, "shapes": shapes}, file)


if __name__ == "__main__":
    main()
