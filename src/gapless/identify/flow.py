"""The network of a learnt posterior: an autoregressive flow that sbi trains, without a word and without a file."""

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput

HIDDEN, TRANSFORMS = 32, 3  # units and layers of the network: more learn a posterior of 60 parameters no better
EPOCHS = 150  # at most: by then every posterior that was tried had been learnt


def learn_flow(theta: Array, x: Array, seen: Array, n: int, seed: int) -> tuple[Array, Callable[[Array], Array]]:
    """Draws of theta given what was seen, and their log-density, by an autoregressive flow that learnt from (theta, x)."""
    import torch

    trainer_of, network = sbi()
    threads = torch.get_num_threads()

    def single(a: Array) -> Any:
        return torch.tensor(a, dtype=torch.float32)

    # torch's own random numbers and threads stay as they were, and what sbi says is not for users
    with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        torch.set_num_threads(1)  # the network is small
        try:
            built = network("maf", hidden_features=HIDDEN, num_transforms=TRANSFORMS)
            trainer = trainer_of(density_estimator=built, tracker=_Silent(), show_progress_bars=False)
            flow = trainer.append_simulations(single(theta), single(x)).train(max_num_epochs=EPOCHS)
            with torch.no_grad():
                drawn = flow.sample((n,), condition=single(seen))[:, 0]
        finally:
            torch.set_num_threads(threads)

    def log_density(theta: Array) -> Array:
        with torch.no_grad():
            return np.asarray(flow.log_prob(single(theta[:, None]), condition=single(seen))[:, 0].numpy(), float)

    return np.asarray(drawn.numpy(), float), log_density


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
