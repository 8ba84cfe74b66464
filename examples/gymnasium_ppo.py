"""Somebody else's algorithm in our worlds: PPO in one file, in the manner of CleanRL, through the Gymnasium interface.

python examples/gymnasium_ppo.py

Nothing of it is Gapless but the environment: a geared servo learns to lift its arm and hold it upright, on robots whose gains,
friction, mass and delays differ. Takes about half a minute.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import gymnasium
import numpy as np
import torch
from torch import nn

from gapless.learn import GymEnvironment, draw_from, run_course, task_of
from gapless.twin import Twin

WORLDS, STEPS, ITERATIONS, EPOCHS, MINIBATCHES = 64, 32, 200, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 0.97, 0.95, 0.2, 0.003, 1e-3


class Agent(nn.Module):
    def __init__(self, width: int, actions: int):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.actor = nn.Sequential(nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions))
        self.log_std = nn.Parameter(torch.full((actions,), -0.7))

    def policy(self, observation: torch.Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.actor(observation), self.log_std.exp())


def train(environment: gymnasium.vector.VectorEnv, seed: int = 0) -> Agent:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    agent = Agent(environment.single_observation_space.shape[0], environment.single_action_space.shape[0])
    optimiser = torch.optim.Adam(agent.parameters(), lr=RATE, eps=1e-5)
    observation = torch.from_numpy(environment.reset(seed=seed)[0])
    for iteration in range(ITERATIONS):
        seen, acted, logged, valued, rewarded, ended = [], [], [], [], [], []
        with torch.no_grad():
            for _ in range(STEPS):
                normal = agent.policy(observation)
                action = normal.sample()
                seen.append(observation)
                acted.append(action)
                logged.append(normal.log_prob(action).sum(1))
                valued.append(agent.critic(observation)[:, 0])
                following, reward, terminated, truncated, _ = environment.step(action.numpy())
                observation = torch.from_numpy(following)
                # an episode that was only cut off goes on being worth something
                rewarded.append(torch.from_numpy(reward).float() + GAMMA * valued[-1] * torch.from_numpy(truncated))
                ended.append(torch.from_numpy(terminated | truncated).float())
            value, advantage, advantages = agent.critic(observation)[:, 0], torch.zeros(WORLDS), []
            for t in reversed(range(STEPS)):
                going = 1 - ended[t]
                advantage = rewarded[t] + GAMMA * going * value - valued[t] + GAMMA * LAMBDA * going * advantage
                advantages.insert(0, advantage)
                value = valued[t]
        batch = [torch.cat(x) for x in (seen, acted, logged, valued, advantages)]
        for _ in range(EPOCHS):
            for rows in torch.randperm(WORLDS * STEPS).chunk(MINIBATCHES):
                observations, actions, old, values, gains = (x[rows] for x in batch)
                normal = agent.policy(observations)
                ratio = (normal.log_prob(actions).sum(1) - old).exp()
                better = (gains - gains.mean()) / (gains.std() + 1e-8)
                surrogate = torch.min(ratio * better, ratio.clamp(1 - CLIP, 1 + CLIP) * better).mean()
                miss = (agent.critic(observations)[:, 0] - (values + gains)).square().mean()
                loss = -surrogate + 0.5 * miss - ENTROPY * normal.entropy().sum(1).mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimiser.step()
        if iteration % 10 == 9:
            print(f"iteration {iteration + 1}: reward per second {torch.stack(rewarded).mean() / 0.02:.2f}")
    return agent


def main() -> None:
    twin = Twin.load("bench")
    task, robots = task_of("swing", twin), draw_from("wide", twin)
    agent = train(GymEnvironment(twin, task, WORLDS, robots))

    def act(observation: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return agent.actor(torch.from_numpy(observation)).numpy()

    result = run_course(twin, task, act, robots, np.random.default_rng(1), seconds=6.0)
    print(f"{result.summary()['success']:.0%} of {len(result.fell)} robots that it has not met hold their arm upright")


if __name__ == "__main__":
    main()
