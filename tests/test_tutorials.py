"""What pages show of outputs is held by its shape; first examples of help are found as they are typed."""

from pathlib import Path

from website.first_examples import LEFT_OUT, ORDER, examples
from website.tutorials import blocks, shape, stale

PAGE = """
```sh
dpmpc train
```

```text output
       AUC    0.8987
guarantee    epsilon = 1
noise        scale 0.0216
```
"""


def test_other_figures_are_the_same_shape_and_other_words_are_not() -> None:
    assert shape("age  17 cells, 10 %, 5.2 %") == shape("age    9 cells, 3 %, 11.25 %") != shape("age  17 rows, 10 %")
    assert shape("run 667cbb4baa2beecb") == shape("run 0123456789abcdef")
    found = blocks(PAGE)
    same = "AUC 0.9\nguarantee epsilon = 2\nnoise   scale 1\n"
    assert stale(PAGE, found, [same], Path()) == []
    assert stale(PAGE, found, ["AUC 0.9\nanother line\nand another\n"], Path()) == ["dpmpc train\n"]


def test_examples_are_read_off_a_help_as_they_are_typed() -> None:
    help = "  Examples:\n    dpmpc a --b 1 \\\n      --c 2\n    dpmpc d        said of it\n\n"
    help += "  Example: dpmpc e x\n  dpmpcx\n"
    assert examples(help) == ["dpmpc a --b 1 --c 2", "dpmpc d", "dpmpc e x"]


def test_every_command_has_a_first_example_that_runs_or_a_reason_why_not() -> None:
    """`.ci/wheel` runs those in the wheel's environment."""
    from click.testing import CliRunner

    from dpmpc.cli.commands import COMMANDS
    from dpmpc.cli.main import group

    assert {*ORDER[1:], *LEFT_OUT} == {*COMMANDS}
    for name in ORDER[1:]:
        help = CliRunner(env={"COLUMNS": "200"}).invoke(group, [name, "--help"]).output
        assert [each for each in examples(help) if each.split()[1] == name], name
