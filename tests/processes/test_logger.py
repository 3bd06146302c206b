"""The logger `dpmpc`, which programs that use the library listen to."""

import io
import logging

import pytest

from dpmpc.processes.logs import LEVEL, heard, log_to


def test_lines_go_to_the_logger_too_and_nowhere_else(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    file = io.StringIO()
    file.name = "<test>"
    with caplog.at_level(logging.INFO, logger="dpmpc"):
        for line in ("connected", "warning: late", "error: gone", "debug: quiet"):
            log_to(file)(line)
    found = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert found == [
        ("dpmpc", "INFO", "connected"), ("dpmpc", "WARNING", "warning: late"), ("dpmpc", "ERROR", "error: gone"),
    ]  # fmt: skip
    assert len(file.getvalue().splitlines()) == 3 and capfd.readouterr().err == ""


def test_a_level_is_heard_where_the_log_or_the_logger_has_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LEVEL, raising=False)
    with caplog.at_level(logging.WARNING, logger="dpmpc"):
        assert [heard(level) for level in ("debug", "info")] == [False, True]
        monkeypatch.setenv(LEVEL, "debug")
        assert heard("debug")
        monkeypatch.setenv(LEVEL, "error")
        assert [heard(level) for level in ("info", "warning")] == [False, True]
    with caplog.at_level(logging.DEBUG, logger="dpmpc"):
        assert heard("debug")
