"""The arrays and batches that the loader makes of the files.

Only the test marked real_mnist loads the real data.
"""

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_files import (
    N_TRAIN,
    assert_is_tiny,
)

import data_loader
import mnist_sources
from data_loader import DataError, load_mnist

PUBLISHED_LABEL_COUNTS = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}
PUBLISHED_SHA256 = dict(mnist_sources.FILES)  # before a fixture replaces it


# ---- folder, dtypes, source


def test_default_data_dir(monkeypatch, tmp_path, full):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # Windows
    assert data_loader.default_data_dir() == tmp_path / ".mnist_cache"
    monkeypatch.setenv("MNIST_CACHE_DIR", "")
    assert data_loader.default_data_dir() == tmp_path / ".mnist_cache"
    monkeypatch.setenv("MNIST_CACHE_DIR", os.path.join("~", "full"))
    assert data_loader.default_data_dir() == full
    assert load_mnist(offline=True).source == "cache"


def test_a_user_without_a_home_folder(monkeypatch):
    def fail(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", fail)
    with pytest.raises(DataError, match="MNIST_CACHE_DIR"):
        load_mnist()


def test_float32_and_uint8_agree(full):
    as_float, as_bytes = load_mnist(full), load_mnist(full, dtype="uint8")
    assert_is_tiny(as_float)
    assert_is_tiny(as_bytes)
    assert as_float.train_images.dtype == np.float32 and as_bytes.train_images.dtype == np.uint8
    assert as_float.train_images.shape == as_bytes.train_images.shape == (N_TRAIN, 784)
    scaled = data_loader.scale_pixels(as_bytes.train_images)
    np.testing.assert_array_equal(as_float.train_images, scaled)
    with pytest.raises(ValueError, match="float64"):
        load_mnist(full, dtype=np.float64)


def test_no_source_holds_a_path(full, empty, mirrors, wheel, monkeypatch):
    sources = [load_mnist(full).source, load_mnist(empty).source]
    shutil.rmtree(empty)
    monkeypatch.setattr(mnist_sources, "MIRRORS", ())
    sources.append(load_mnist(empty).source)
    assert len(set(sources)) == 3
    for source in sources:
        assert "/" not in source and os.sep not in source


# ---- pixels and batches


def test_scale_pixels_is_exact():
    values = np.arange(256, dtype=np.uint8).reshape(2, 128)
    scaled = data_loader.scale_pixels(values)
    assert scaled.dtype == np.float32 and scaled.shape == (2, 128)
    assert scaled[0, 0] == 0 and scaled[1, 127] == 1
    expected = [[np.float32(int(v)) / np.float32(255) for v in row] for row in values]
    np.testing.assert_array_equal(scaled, np.array(expected, np.float32))
    assert data_loader.scale_pixels(scaled) is scaled


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("n", "batch_size", "last"), [(10, 4, 2), (8, 4, 4), (3, 5, 3), (5, 1, 1)])
def test_batches_use_every_example_once_with_its_label(n, batch_size, last, dtype):
    images = np.repeat(np.arange(n, dtype=np.uint8)[:, None], 784, axis=1)
    labels = np.arange(n, dtype=np.int32)
    order = data_loader.epoch_order(0, 1, n)
    given = images if dtype == np.uint8 else data_loader.scale_pixels(images)
    pairs = list(data_loader.batches(given, labels, batch_size, order))
    assert [len(batch) for batch, _ in pairs[:-1]] == [batch_size] * (len(pairs) - 1)
    assert pairs[-1][0].shape == (last, 784) and pairs[-1][1].shape == (last,)
    for batch, batch_labels in pairs:
        assert batch.dtype == np.float32 and batch_labels.dtype == np.int32
        np.testing.assert_array_equal(
            batch[:, 0], batch_labels.astype(np.float32) / np.float32(255)
        )
        assert (batch == batch[:, :1]).all()
    seen = np.concatenate([batch_labels for _, batch_labels in pairs])
    np.testing.assert_array_equal(seen, order)
    assert sorted(seen) == list(range(n))


def test_epoch_order_depends_on_seed_and_epoch_alone():
    order = data_loader.epoch_order(3, 1, 1000)
    assert order.dtype == np.int64 and sorted(order) == list(range(1000))
    np.random.seed(1)  # the global state has no say
    np.testing.assert_array_equal(order, data_loader.epoch_order(3, 1, 1000))
    for seed, epoch in ((3, 2), (4, 1), (1, 3)):
        assert not np.array_equal(order, data_loader.epoch_order(seed, epoch, 1000))


# ---- the real data


@pytest.mark.real_mnist
def test_the_real_data():
    as_bytes = load_mnist(dtype=np.uint8)
    as_float = load_mnist()
    for split, n, count in (("train", 60_000, "0000ea60"), ("test", 10_000, "00002710")):
        images = getattr(as_bytes, f"{split}_images")
        labels = getattr(as_bytes, f"{split}_labels")
        scaled = getattr(as_float, f"{split}_images")
        assert images.shape == scaled.shape == (n, 784) and labels.shape == (n,)
        assert (images.dtype, scaled.dtype, labels.dtype) == (np.uint8, np.float32, np.int32)
        assert (images.min(), images.max(), scaled.min(), scaled.max()) == (0, 255, 0, 1)
        np.testing.assert_array_equal(np.rint(scaled[:1000] * 255), images[:1000])
        assert np.bincount(labels).tolist() == PUBLISHED_LABEL_COUNTS[split]
        # Put together again, the arrays give the published files.
        stem = "train" if split == "train" else "t10k"
        idx_images = bytes.fromhex(f"00000803{count}0000001c0000001c") + images.tobytes()
        idx_labels = bytes.fromhex(f"00000801{count}") + labels.astype(np.uint8).tobytes()
        for name, content in (("images-idx3", idx_images), ("labels-idx1", idx_labels)):
            full_name = f"{stem}-{name}-ubyte"
            assert hashlib.sha256(content).hexdigest() == PUBLISHED_SHA256[full_name]
            assert as_bytes.sha256[full_name] == PUBLISHED_SHA256[full_name]
