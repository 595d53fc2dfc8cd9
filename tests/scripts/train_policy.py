"""Train a policy with PPO: normal actions, advantages, clipped ratios, divergence, an EMA copy."""

import argparse
import copy
import json
import os

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.distributions import Independent, Normal, kl_divergence
from torch.func import functional_call
from torch.utils.data import BatchSampler

STEPS, ENVIRONMENTS, OBSERVED, ACTIONS = 32, 8, 6, 2


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bias = nn.Parameter(torch.Tensor(1, size).fill_(-0.5))

    def forward(self, x):
        return self.bias.expand_as(x).exp()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            nn.utils.spectral_norm(nn.Linear(OBSERVED, 64)), nn.Tanh(), nn.Linear(64, 1)
        )
        self.actor = nn.Sequential(nn.Linear(OBSERVED, 64), nn.Tanh(), nn.Linear(64, ACTIONS))
        self.scale = Scale(ACTIONS)

    def policy(self, x):
        mean = self.actor(x)
        return Independent(Normal(mean, self.scale(mean)), 1)

    def forward(self, x, action):
        policy = self.policy(x)
        return policy.log_prob(action), policy.entropy(), self.critic(x).squeeze(-1)


def load_weights(model, path):
    weights = np.load(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("_orig"):  # of the layer with the spectral norm
                rng = np.random.default_rng(7)
                values = rng.standard_normal(tuple(parameter.shape)) / 3
                parameter.copy_(torch.Tensor(values))
            else:
                parameter.copy_(torch.from_numpy(weights[name]))
        for buffer in model.buffers():
            rng = np.random.default_rng(buffer.numel())
            first = torch.FloatTensor(rng.standard_normal(tuple(buffer.shape)))
            buffer.copy_(first / first.norm())


def advantages_of(rewards, values, dones, last):
    advantages = torch.zeros_like(rewards)
    running = 0
    for t in reversed(range(STEPS)):
        following = last if t == STEPS - 1 else values[t + 1]
        alive = 1.0 - dones[t]
        delta = rewards[t] + 0.99 * following * alive - values[t]
        advantages[t] = running = delta + 0.99 * 0.95 * alive * running
    return advantages


def rollout(agent, number):
    """Actions are means and NumPy's noise, so that they are the same everywhere."""
    rng = np.random.default_rng(100 + number)
    seen = torch.zeros((STEPS, ENVIRONMENTS, OBSERVED))
    done = torch.zeros((STEPS, ENVIRONMENTS, ACTIONS))
    chances, rewards, dones, values = (torch.zeros((STEPS, ENVIRONMENTS)) for _ in range(4))
    now = torch.Tensor(rng.standard_normal((ENVIRONMENTS, OBSERVED)))
    for t in range(STEPS):
        seen[t] = now
        with torch.no_grad():
            policy = agent.policy(now)
            noise = torch.Tensor(rng.standard_normal((ENVIRONMENTS, ACTIONS)))
            done[t] = policy.mean + policy.stddev * noise
            chances[t], _, values[t] = agent(now, done[t])
        rewards[t] = -0.05 * ((done[t] - now[:, :ACTIONS]) ** 2).sum(-1)
        dones[t] = torch.Tensor(rng.random(ENVIRONMENTS) < 0.1)
        now = torch.Tensor(rng.standard_normal((ENVIRONMENTS, OBSERVED)))
    with torch.no_grad():
        last = agent.critic(now).squeeze(-1)
    advantages = advantages_of(rewards, values, dones, last)
    parts = (seen, done, chances, advantages, advantages + values)
    return [part.flatten(0, 1) for part in parts], rewards.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--stop", type=int, default=None)
    args = parser.parse_args()

    agent = Agent()
    load_weights(agent, args.weights)
    average = copy.deepcopy(dict(agent.named_parameters()))
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
    step, losses, norms = 0, [], []
    if os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        agent.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        average = state["average"]
        step, losses, norms = state["step"], state["losses"], state["norms"]

    stop = args.steps if args.stop is None else args.stop
    while step < stop:  # ten steps for each rollout: a run stops between rollouts
        parts, _ = rollout(agent, step // 10)
        order = np.random.default_rng(step).permutation(STEPS * ENVIRONMENTS)
        batches = list(BatchSampler(order.tolist(), 128, drop_last=True)) * 5
        for chosen in batches:
            seen, done, chances, advantages, returns = (Variable(part[chosen]) for part in parts)
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            log_prob, entropy, value = agent(seen, done)
            ratio = (log_prob - chances).exp()
            clipped = torch.clamp(ratio, 0.8, 1.2)
            gain = torch.min(ratio * advantages, clipped * advantages).mean()
            loss = 0.5 * nn.functional.mse_loss(value, returns) - gain - 0.01 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            with torch.no_grad():
                for name, parameter in agent.named_parameters():
                    average[name].lerp_(parameter, 0.1)
            losses.append(loss.item())
            norms.append(norm.item())
            step += 1
    torch.save(
        {
            "model": agent.state_dict(),
            "optimizer": optimizer.state_dict(),
            "average": {name: one.detach() for name, one in average.items()},
            "step": step,
            "losses": losses,
            "norms": norms,
        },
        args.checkpoint,
    )
    agent.eval()
    parts, reward = rollout(agent, 77)
    with torch.no_grad():
        mine = functional_call(agent, average, (parts[0], parts[1]))[0]
        policy = agent.policy(parts[0])
        other = Independent(Normal(torch.zeros_like(parts[1]), 1.0), 1)
        test_loss = (kl_divergence(policy, other).mean() - mine.mean()).item()
    print(f"step {step}: loss {losses[-1]:.4f}, reward {reward:.3f}")
    shapes = {name: list(p.shape) for name, p in agent.state_dict().items()}
    result = {"losses": losses, "norms": norms, "test_loss": test_loss, "shapes": shapes}
    with open(args.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
