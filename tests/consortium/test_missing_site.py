"""A site that never comes is named by everybody who waits, by its own name; nobody who is there is blamed."""

import contextlib
from pathlib import Path

from runs import HANG, dpmpc, errors_of, own_addresses, started, wait_until
from test_last_word import NAMES, TOML

from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.toml import read_consortium

SOUTH = '[[owners]]\nname = "south"\nrecords = 60\n[records]\n'


def test_an_owner_that_never_comes_is_named_by_all_who_are_there(tmp_path: Path) -> None:
    """insel comes last and gives up first: the other parties and north wait for as long as it takes."""
    named = zip(NAMES, own_addresses(3)[1::2], strict=True)
    parties = "\n".join(f'[[parties]]\nname = "{name}"\naddress = "{address}"' for name, address in named)
    (tmp_path / "consortium.toml").write_text(TOML.replace("[records]\n", SOUTH, 1).format(parties=parties))
    write_kits(read_consortium(tmp_path / "consortium.toml"), tmp_path / "kits", tmp_path / "authority")
    records = tmp_path / "records.csv"
    records.write_text("age,ill\n" + "".join(f"{20 + k},{'yes' if k % 3 else 'no'}\n" for k in range(60)))
    kits = [tmp_path / "kits" / name for name in (*NAMES[:2], "north", NAMES[2])]
    with contextlib.ExitStack() as stack:
        sites = [stack.enter_context(started("join", kit, "--wait", HANG)) for kit in kits[:2]]
        sites.append(stack.enter_context(started("join", kits[2], "--csv", records, "--wait", HANG)))
        for kit in kits[:3]:
            wait_until(lambda run=kit / "run": any(log.read_text() for log in run.glob("*.log")))
        sites.append(stack.enter_context(started("join", kits[3], "--wait", 10)))
        said = [errors_of(site).strip().splitlines()[-1] for site in sites]
    assert [site.returncode for site in sites] == [3] * 4, said
    cause = "error: all owners must come within 10 s; 1 of 2 did not: south (owner 1); start their processes"
    for line in said:
        assert line.startswith(cause), said
        there = line.removeprefix(cause).replace("told by insel (party 2)", "").replace("told by akh (party 0)", "")
        there = there.replace("told by charite (party 1)", "")
        assert not any(name in there for name in (*NAMES, "north")), said
    assert "north (owner 0): failed" in dpmpc("status", kits[2]).stdout
