"""The options: each one reaches the configuration, and bad values are refused in one line."""

from pathlib import Path

import pytest
from made_up import tiny_mnist

import config
from utils import OptionParser, ScriptError


def parse(*words):
    parser = OptionParser()
    config.add_training_options(parser)
    return parser.parse_args(words)


def test_defaults_are_those_of_the_published_run():
    assert config.config_from_options(parse()) == config.Config(10, 128, 0.01, 0, "maximum", "cpu")
    assert parse().results_dir == config.REPOSITORY / "results"


@pytest.mark.parametrize(
    "option, text, field, value",
    [
        ("--epochs", "3", "epochs", 3),
        ("--batch-size", "60000", "batch_size", 60_000),
        ("--learning-rate", "1e-3", "learning_rate", 0.001),
        ("--seed", "4294967295", "seed", 2**32 - 1),
        ("--activation", "nn_relu", "activation", "nn_relu"),
        ("--platform", "gpu", "platform", "gpu"),
    ],
)
def test_every_option_reaches_its_field(option, text, field, value):
    assert getattr(config.config_from_options(parse(option, text)), field) == value


@pytest.mark.parametrize(
    "option, text",
    [
        ("--epochs", "0"),
        ("--epochs", "-1"),
        ("--epochs", "ten"),
        ("--epochs", "1.5"),
        ("--batch-size", "0"),
        ("--batch-size", "60001"),
        ("--learning-rate", "0"),
        ("--learning-rate", "-0.1"),
        ("--learning-rate", "nan"),
        ("--learning-rate", "inf"),
        ("--learning-rate", "fast"),
        ("--seed", "-1"),
        ("--seed", "4294967296"),
        ("--activation", "tanh"),
        ("--platform", "abacus"),
        ("--results-dir", "~nobody-of-this-name/results"),
    ],
)
def test_a_bad_value_is_named_in_one_line(capsys, option, text):
    with pytest.raises(SystemExit) as ended:
        parse(option, text)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert option in err and text in err


def test_relative_folders_start_at_the_repository(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    options = parse("--results-dir", "mine", "--data-dir", "data")
    assert options.results_dir == config.REPOSITORY / "mine"
    assert options.data_dir == config.REPOSITORY / "data"
    assert parse("--results-dir", str(tmp_path)).results_dir == tmp_path
    assert parse("--data-dir", "~/data").data_dir == Path.home() / "data"


def test_help_names_every_option_with_its_default(capsys):
    with pytest.raises(SystemExit):
        parse("--help")
    text = " ".join(capsys.readouterr().out.split())
    for default in ("10", "128", "0.01", "0", "maximum", "cpu", "~/.mnist_cache", "off", "results"):
        assert f"default: {default}" in text or f"else {default}" in text


def test_data_options_reach_the_loader(monkeypatch, tmp_path):
    calls = []

    def load_mnist(data_dir, *, offline, dtype):
        calls.append((data_dir, offline))
        return tiny_mnist()

    monkeypatch.setattr(config.data_loader, "load_mnist", load_mnist)
    config.load_data(parse())
    config.load_data(parse("--offline", "--data-dir", str(tmp_path)))
    assert calls == [(None, False), (tmp_path, True)]


def test_missing_data_is_a_fault_that_the_user_can_act_on(tmp_path):
    with pytest.raises(ScriptError, match="by hand"):
        config.load_data(parse("--offline", "--data-dir", str(tmp_path)))
