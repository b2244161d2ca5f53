"""The studies' measurements: what they count, on the running program and on hand-written HLO."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_up import tiny_mnist

import measure_bound
import measure_drift
import measure_inside
import measure_range
import studies
from config import Config
from modes import LADDER

CONFIG = Config(batch_size=16)

HLO = """HloModule jit_f, is_scheduled=true

FileNames
1 "/home/someone/model.py"

FunctionNames
1 "f"

%fused (p0: f32[2,3], p1: f32[3,4]) -> f32[2,4] {
  %p0 = f32[2,3]{1,0} parameter(0)
  %p1 = f32[3,4]{1,0} parameter(1)
  ROOT %dot.1 = f32[2,4]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main (a: f32[2,3], b: f32[3,4]) -> (f32[2,4], f32[2,4]) {
  %a = f32[2,3]{1,0} parameter(0)
  %b = f32[3,4]{1,0} parameter(1), metadata={op_name="b" source_file="/home/someone/model.py"}
  %dot.2 = f32[2,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %cc = f32[2,4]{1,0} custom-call(%a, %b), custom_call_target="__onednn$matmul"
  %other = (f32[2,4]{1,0}, s8[8]{0}) custom-call(%a, %b), custom_call_target="TopK"
  %fusion.1 = f32[2,4]{1,0} fusion(%a, %b), kind=kCustom, calls=%fused, metadata={op_name="f"}
  ROOT %tuple = (f32[2,4]{1,0}, f32[2,4]{1,0}) tuple(%fusion.1, %cc)
}
"""


class Told(list):
    def __call__(self, done, total, text):
        self.append((done, total))


def test_hlo_loses_every_path_and_keeps_the_program():
    text = measure_inside.without_paths(HLO)
    assert "/home" not in text and "FileNames" not in text
    assert text.count("dot(") == 2 and text.rstrip().endswith("}")
    assert "ENTRY %main" in text


def test_instructions_and_products_are_counted():
    hlo = measure_inside.without_paths(HLO)
    assert measure_inside.count_instructions(hlo) == {
        "parameter": 2,
        "custom-call": 2,
        "dot": 1,
        "fusion (Custom)": 1,
        "tuple": 1,
    }
    assert measure_inside.count_products(hlo) == 3  # one of them within the fusion


def test_events_are_counted_by_their_names():
    names = ["$model.py:1 f", "$x", "PjRtCpuExecutable::ExecuteHelper", "PjitFunction(add)", "add"]
    assert measure_inside.count_events(names) == {
        "executions": 1,
        "python_calls": 2,
        "operations": {"add": 1},
    }


@pytest.mark.parametrize(
    "mode, least, most", [("numpy", 0, 0), ("jit", 5, 5), ("no_jit", 200, 400)]
)
def test_a_profile_tells_how_many_programs_five_steps_run(mode, least, most, tmp_path):
    data = tiny_mnist()
    data = data._replace(
        train_images=np.tile(data.train_images, (2, 1)), train_labels=np.tile(data.train_labels, 2)
    )
    told = Told()
    raw = measure_inside.measure(data, CONFIG, mode, True, told, trace_dir=tmp_path)
    assert least <= raw["executions"] <= most
    assert told == [(1, 1)]
    assert list(tmp_path.rglob("*.trace.json.gz"))
    assert ("program" in raw) == (mode == "jit")
    if mode == "jit":
        assert raw["program"]["products"] == 8
        assert "/" not in raw["hlo"].replace("/*index=", "").replace("*/", "")


@pytest.mark.parametrize("last_transposed", [False, True])
def test_products_are_the_eight_of_a_step(last_transposed):
    products = measure_bound.step_products(128, last_transposed)
    assert len(products) == 8
    assert measure_bound.count_flops(products) == 308_150_272  # counted by hand
    for first, second, transposed, second_transposed in products:
        a, b = np.zeros(first), np.zeros(second)
        (a.T if transposed else a) @ (b.T if second_transposed else b)  # the shapes fit
    weights = [second for _, second, transposed, _ in products if not transposed]
    assert ((10, 256) in weights) == last_transposed and ((256, 10) in weights) != last_transposed


def test_the_floor_does_its_products_in_full():
    # XLA must neither take a product out of the loop nor make only the element that is used.
    products = measure_bound.step_products(16)[:2]
    call = measure_bound._loop_of_products(products, 3)
    firsts = call()
    assert [array.shape for array in firsts] == [first for first, *_ in products]
    loop = next(c.cell_contents for c in call.__closure__ if hasattr(c.cell_contents, "lower"))
    shapes = [[jax.ShapeDtypeStruct(p[i], jnp.float32) for p in products] for i in (0, 1)]
    hlo = measure_inside.without_paths(loop.lower(*shapes).compile().as_text())
    body = hlo[: hlo.index("ENTRY")]
    for shape in ("f32[16,512]", "f32[784,512]"):
        assert shape in body
    assert measure_inside.count_products(hlo) == measure_inside.count_products(body) >= 2


def test_bound_times_everything_in_each_round(monkeypatch):
    monkeypatch.setattr(measure_bound, "PEAK_SIZES", {16: 2})
    monkeypatch.setattr(measure_bound, "UPDATES_PER_SAMPLE", 2)
    monkeypatch.setattr(measure_bound, "ROUNDS", 2)
    unknown = {"no such option": {"xla": {"xla_no_such_option": True}}}
    tries = dict(list(measure_bound.TRIES.items())[:2])
    monkeypatch.setattr(measure_bound, "TRIES", {**tries, **unknown})
    told = Told()
    raw = measure_bound.measure(tiny_mnist(), CONFIG, "modes", False, told)
    assert told == [(1, 2), (2, 2)]
    kinds = [sample["kind"] for sample in raw["samples"]]
    assert kinds == ["peak", "products", "scan_products", "update"] + 6 * ["mode"]
    assert all(len(sample["seconds"]) == 2 for sample in raw["samples"])
    raw = measure_bound.measure(tiny_mnist(), CONFIG, "tries", True, told)
    assert [sample["kind"] for sample in raw["samples"]] == ["mode", "try", "try"]
    assert all(sample["work"] == 70 for sample in raw["samples"])
    assert all(len(sample["seconds"]) == 1 for sample in raw["samples"])
    assert list(raw["refused"]) == ["no such option"]
    monkeypatch.setattr(measure_bound, "SHORT_IMAGES", 32)
    raw = measure_bound.measure(tiny_mnist(), CONFIG, "tries", True, told)
    assert all(sample["work"] == 32 for sample in raw["samples"])


def test_range_measures_every_mode_in_each_cell(monkeypatch):
    monkeypatch.setattr(measure_range, "SHORT_WIDTHS", {1: (1, 16)})
    monkeypatch.setattr(measure_range, "SECONDS_PER_SAMPLE", 1e-9)
    told = Told()
    raw = measure_range.measure(tiny_mnist(), CONFIG, "all", True, told)
    assert told == [(1, 2), (2, 2)]
    assert [(cell["batch_size"], cell["mode"]) for cell in raw["cells"]] == [
        (size, mode) for size in (1, 16) for mode in measure_range.STEPS
    ]
    assert measure_range.scaled_layers(0.25) == [784, 128, 64, 10]


# JAX 0.4.30 adds none; 0.4.38, 0.10 and 0.12 add one for each ReLU.
NN_RELU_ENTRIES = 2 if jax.__version_info__ >= (0, 4, 38) else 0


@pytest.mark.parametrize("part, per_step", [("maximum", 0), ("nn_relu", NN_RELU_ENTRIES)])
def test_drift_counts_the_entries_that_a_step_adds(monkeypatch, part, per_step):
    monkeypatch.setattr(measure_drift, "SHORT_STEPS", 2)
    data = tiny_mnist()
    records = measure_drift.measure(data, Config(batch_size=8), part, True, Told())["records"]
    assert [record["steps"] for record in records] == [2, 4, 6]
    entries = [record["greater_cache_entries"] for record in records]
    assert [b - a for a, b in zip(entries, entries[1:])] == [2 * per_step] * 2


def test_every_part_of_a_study_is_measured():
    assert tuple(studies.STUDIES["drift"].parts) == tuple(measure_drift.ARMS)
    assert measure_inside.STEPS.keys() == LADDER.keys() == set(studies.STUDIES["inside"].parts)
