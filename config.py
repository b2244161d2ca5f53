"""The options that every training shares, and the data by them. Never imports JAX."""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

import data_loader
from mnist_cache import folder_fault
from mnist_sources import TRAIN_EXAMPLES
from utils import OptionError, ScriptError

REPOSITORY = Path(__file__).resolve().parent
PLATFORMS = ("cpu", "gpu", "tpu")
ACTIVATIONS = ("maximum", "nn_relu")


@dataclass(frozen=True)
class Config:
    """What decides a training run; both modes get the same."""

    epochs: int = 10  # passes over the 60,000 training images
    batch_size: int = 128  # images a step; 60000 = 468 * 128 + 96, so the last batch is smaller
    learning_rate: float = 0.01  # constant: plain SGD has no other setting
    seed: int = 0  # decides the initial parameters and the order of the batches
    activation: str = "maximum"  # nn_relu may get slower step by step, if eager
    platform: str = "cpu"  # where JAX runs; the published results are from the CPU


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a training run to a parser, with the defaults of Config."""
    parser.add_argument(
        "--epochs",
        type=_epochs,
        default=Config.epochs,
        metavar="N",
        help="passes over the training images (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-size",
        type=_batch_size,
        default=Config.batch_size,
        metavar="N",
        help=f"images a step, at most {TRAIN_EXAMPLES} (default: %(default)s)",
    )
    parser.add_argument(
        "--learning-rate",
        type=_learning_rate,
        default=Config.learning_rate,
        metavar="X",
        help="step size of plain SGD (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=_seed,
        default=Config.seed,
        metavar="N",
        help="decides initial parameters and order of the batches (default: %(default)s)",
    )
    parser.add_argument(
        "--activation",
        choices=ACTIVATIONS,
        default=Config.activation,
        help="ReLU as jnp.maximum(x, 0) or as jax.nn.relu, whose eager derivative may get "
        "slower at each step (default: %(default)s)",
    )
    parser.add_argument(
        "--platform",
        choices=PLATFORMS,
        default=Config.platform,
        help="where JAX runs (default: %(default)s)",
    )
    parser.add_argument(
        "--data-dir",
        type=repository_path,
        metavar="DIR",
        help="folder with the MNIST files (default: $MNIST_CACHE_DIR, else ~/.mnist_cache)",
    )
    parser.add_argument(
        "--offline",
        action="store_true",
        help="use the MNIST files in that folder, never the network (default: off)",
    )
    parser.add_argument(
        "--no-progress",
        action="store_true",
        help="no bar, on a terminal either: plain lines alone (default: off)",
    )
    parser.add_argument(
        "--results-dir",
        type=repository_path,
        default=REPOSITORY / "results",
        metavar="DIR",
        help="folder for what the run writes (default: results); relative folders, here and in "
        "--data-dir, start at the repository",
    )


def config_from_options(options: argparse.Namespace) -> Config:
    """Picks the fields of Config out of the parsed options."""
    return Config(**{field.name: getattr(options, field.name) for field in fields(Config)})


def load_data(options: argparse.Namespace) -> data_loader.Mnist:
    """Loads MNIST by the options, its images as bytes.

    As float32 they would take 165 MB more, and each batch would read four times the memory.

    Raises:
        OptionError: If --data-dir names what cannot be a folder with the files.
        ScriptError: If no source has the data.
    """
    fault = options.data_dir and folder_fault(options.data_dir)
    if fault:
        raise OptionError(f"--data-dir {options.data_dir}: {fault}; choose another folder")
    try:
        return data_loader.load_mnist(options.data_dir, offline=options.offline, dtype=np.uint8)
    except data_loader.DataError as error:
        raise ScriptError(str(error)) from error


@contextmanager
def data_for_processes(options: argparse.Namespace) -> Iterator[argparse.Namespace]:
    """Loads MNIST once; within the with-block, other processes find it by the options it gives.

    Where the cache folder cannot keep the files, a temporary folder does, or each process would
    download them again.

    Raises:
        ScriptError: If no source has the data, or no folder can keep it.
    """
    data = load_data(options)
    with ExitStack() as stack:
        if not data.kept:
            try:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                data_loader.write_files(data, folder)
            except OSError as error:
                raise ScriptError(
                    f"no folder can keep MNIST for the processes ({error.strerror or error}); "
                    "name one by --data-dir, or one for temporary files by TMPDIR"
                ) from error
            options = argparse.Namespace(**{**vars(options), "data_dir": folder})
        del data  # the processes load their own
        yield options


def repository_path(text: str) -> Path:
    """Returns a folder that an option names; a relative one starts at the repository.

    Raises:
        argparse.ArgumentTypeError: If it is empty, or in the home of a user who is not there.
    """
    if not text:
        raise argparse.ArgumentTypeError("no folder is named")
    try:
        return REPOSITORY / Path(text).expanduser()
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def whole_number(text: str, least: int, most: int) -> int:
    """Returns the number that an option names.

    Raises:
        argparse.ArgumentTypeError: If it is none, or out of these bounds.
    """
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text} is not from {least} to {most}")
    return number


def _epochs(text: str) -> int:
    return whole_number(text, 1, 1_000_000)


def _batch_size(text: str) -> int:
    return whole_number(text, 1, TRAIN_EXAMPLES)


def _seed(text: str) -> int:
    # jax.random.key takes 32 bits without x64.
    return whole_number(text, 0, 2**32 - 1)


def _learning_rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
