"""The network of a learnt posterior: an autoregressive flow that sbi trains, without a word and without a file."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.files import refusing

HIDDEN, TRANSFORMS = 32, 3  # units and layers of the network: more learn a posterior of 60 parameters no better
EPOCHS = 150  # at most: by then every posterior that was tried had been learnt


class Flow:
    """An autoregressive flow of theta given x that was learnt; it keeps no reference to what it was learnt from."""

    def __init__(self, network: Any, widths: tuple[int, int], size: tuple[int, int]):
        self._network, self.widths, self.size = network, widths, size
        """Widths of theta and x; hidden units and layers."""

    def sample(self, seen: Array, n: int, seed: int) -> Array:
        """Draws given what was seen, (1, numbers). Shape: (n, parameters)."""
        import torch

        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            return np.asarray(self._network.sample((n,), condition=_single(seen))[:, 0].numpy(), float)

    def log_density(self, theta: Array, seen: Array) -> Array:
        """Of vectors (n, parameters) given what was seen. Shape: (n,)."""
        import torch

        with torch.no_grad():
            found = self._network.log_prob(_single(theta[:, None]), condition=_single(seen))
            return np.asarray(found[:, 0].numpy(), float)

    def arrays(self) -> dict[str, Array]:
        """All of its numbers by name."""
        return {name: tensor.numpy() for name, tensor in self._network.state_dict().items()}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], widths: tuple[int, int], size: tuple[int, int]) -> Flow:
        """The flow that `arrays` told all numbers of; raises BadInput where they are of another one."""
        import torch

        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            any_ = [torch.randn(8, width) for width in widths]  # its scales are among the numbers
            network = sbi()[1]("maf", hidden_features=size[0], num_transforms=size[1])(*any_)
        with refusing("its numbers are those of another network", RuntimeError, KeyError, TypeError, ValueError):
            network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        return cls(network, widths, size)


def _single(a: Array) -> Any:
    import torch

    return torch.tensor(np.asarray(a), dtype=torch.float32)


def train_flow(theta: Array, x: Array, seed: int, size: tuple[int, int] = (HIDDEN, TRANSFORMS), epochs: int = EPOCHS) -> Flow:
    """A flow of theta given x, from pairs. Shapes: (n, parameters) and (n, numbers). size: hidden units and layers."""
    import torch

    trainer_of, network = sbi()
    threads = torch.get_num_threads()
    # torch's own random numbers and threads stay as they were, and what sbi says is not for users
    with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        torch.set_num_threads(1)  # the network is small
        try:
            built = network("maf", hidden_features=size[0], num_transforms=size[1])
            trainer = trainer_of(density_estimator=built, tracker=_Silent(), show_progress_bars=False)
            flow = trainer.append_simulations(_single(theta), _single(x)).train(max_num_epochs=epochs)
        finally:
            torch.set_num_threads(threads)
    return Flow(flow, (theta.shape[1], x.shape[1]), size)


def learn_flow(theta: Array, x: Array, seen: Array, n: int, seed: int) -> tuple[Array, Callable[[Array], Array]]:
    """Draws of theta given what was seen, and their log-density, by an autoregressive flow that learnt from (theta, x)."""
    flow = train_flow(theta, x, seed)
    return flow.sample(seen, n, seed), lambda theta: flow.log_density(theta, seen)


class _Silent:
    """Where sbi would write TensorBoard files into the working directory."""

    log_dir = None

    def log_metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def flush(self) -> None: ...


def sbi() -> tuple[Any, Any]:
    """Its trainer and its maker of networks; raises where it is not installed."""
    try:
        from sbi.inference import NPE
        from sbi.neural_nets import posterior_nn
    except ImportError:
        raise BadInput("--method posterior needs sbi: pip install 'gapless[posterior]'") from None
    return NPE, posterior_nn
