"""consortium.toml: what it says, what is wrong with it and where; its keys against the command line's options; the
plan; the kits; what `join` refuses."""

import configparser
import datetime
import json
import math
import re
import shlex
import shutil
import socket
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from dpmpc.aggregation.plan.limits import OWN_WORD, Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.cli import main as cli
from dpmpc.cli.check import command as check_command
from dpmpc.cli.train_options import OPTIONS
from dpmpc.consortium.joining import Joining, check_keys, check_room, join, kit_spelling, request_of, where_of
from dpmpc.consortium.kit import owner_of_kit, read_kit, write_kits
from dpmpc.consortium.kit_texts import ACCOUNT
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_keys import ConsortiumFile, editor_schema
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.consortium.wheel import wheel_of
from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.written import known_keys
from dpmpc.mpc.transport import credentials
from dpmpc.mpc.transport.credentials import make_request, sign_request
from dpmpc.privacy.account import account_folder
from dpmpc.records.schema import Classes, Labels
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis.source import Synthesis
from tests.commands import parsed
from tests.refusals import refuses
from tests.tables import write

ROOT = Path(__file__).parents[2]
HERE = ("127.0.0.2:1000", "127.0.0.3:1000", "127.0.0.4:1000")


def written(folder: Path, **changes: Any) -> Path:
    """A consortium.toml as `dpmpc init` writes it."""
    return write(folder, text_of(Founding(addresses=HERE, iterations=3, **changes)), "consortium.toml")


def changed(path: Path, *pairs: str) -> Path:
    """The file with texts in place of others, each where it comes first: [limits], which comes last, has keys of other
    sections too."""
    text = path.read_text()
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert 1 <= text.count(old) <= 2, (old, text.count(old))
        text = text.replace(old, new, 1)
    path.write_text(text)
    return path


def alone(path: Path) -> Path:
    """The file without a survey: numbers as their bounds scale them."""
    return changed(path, '# preprocessing = "records"', 'preprocessing = "records"')


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_consortium(path)
    text = owner_text(caught.value)
    assert "\n" not in text and text.startswith(("consortium.toml", "a consortium")), text
    return text


def options_of(command: str) -> set[str]:
    found = cli.group.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    return {str(option.name) for option in found.params}


# -- every option has its place ----------------------------------------------------------------------------------------
# What only a run can have that reads all owners' records, or makes its processes itself.
_ALL_RECORDS_HERE = {
    "data", "data_dir", "owners_column", "drop", "official_test", "max_rows",
    "dimension", "seed", "skew", "engine", "figures", "baseline", "evaluate",
}  # fmt: skip
_OTHER_WAYS = {"resume", "plan_file", "plan_only", "ssl", "base_port", "index"}  # init, plan, kit and join themselves
_CALLED = {  # option -> key, where they differ
    "schema": "schema", "bounds": "bounds", "addresses": "address",
    "parties": "parties", "owner_sizes": "owners", "owners": "owners",
}  # fmt: skip


def test_every_option_of_train_has_its_place_in_the_file_or_at_a_site() -> None:
    options = {str(option.name) for section in OPTIONS.values() for option in section}
    keys, at_site = set(known_keys(ConsortiumFile)), options_of("join")
    asked = options - _ALL_RECORDS_HERE - _OTHER_WAYS
    homeless = {name for name in asked if _CALLED.get(name, name) not in keys and name not in at_site}
    assert homeless == set()
    assert not (_ALL_RECORDS_HERE | _OTHER_WAYS) - options  # the lists name options that are there
    assert not (_ALL_RECORDS_HERE & keys)


def test_the_new_file_names_every_key_once_and_reads_with_all_of_them(tmp_path: Path) -> None:
    """Each key that is commented out is one that the file knows, in its own section, with a value that it takes."""
    text = text_of(Founding(addresses=HERE))
    assert not [line for line in text.splitlines() if len(line) > 120]
    blocks = re.split(r"^(?:# )?(\[+[a-z.]+\]+).*$", text, flags=re.MULTILINE)
    sections: dict[str, set[str]] = {}
    for title, block in zip(blocks[1::2], blocks[2::2], strict=True):
        keys = re.findall(r"^(?:# )?([a-z_]+) = ", block, re.MULTILINE)
        assert len(keys) == len(set(keys)), title
        sections.setdefault(title.strip("[]"), set()).update(keys)
    parts = {field.name: field.type for field in msgspec.structs.fields(ConsortiumFile)}
    del parts["source"]  # whose keys are each source's own
    for name, kind in parts.items():
        inner = getattr(kind, "__args__", (kind,))[0]
        known = {field.name for field in msgspec.structs.fields(inner)} - {"bounds"} - OWN_WORD
        assert sections[name] == known, name
    everything = re.sub(r"^# (\[stats\]|\[synth\]|\[meet\]|[a-z_]+ = )", r"\1", text, flags=re.MULTILINE)
    msgspec.convert(tomllib.loads(everything), ConsortiumFile)


def test_two_classes_are_a_label_and_its_second_is_positive(tmp_path: Path) -> None:
    path, text = tmp_path / "consortium.toml", text_of(Founding(addresses=HERE))
    text = re.sub(r"^positive = .*$", 'classes = ["well", "ill"]', text, flags=re.MULTILINE)
    path.write_text(re.sub(r"^negative = .*\n", "", text, flags=re.MULTILINE))
    made = read_consortium(path).schema
    assert made is not None and made.target == Labels("outcome", ("ill",), ("well",))
    path.write_text(path.read_text().replace('["well", "ill"]', '["well", "so", "ill"]'))
    made = read_consortium(path).schema
    assert made is not None and made.target == Classes("outcome", ("well", "so", "ill"))


def test_editors_know_the_file(tmp_path: Path) -> None:
    value = tomllib.loads(text_of(Founding()))
    jsonschema.validate(value, editor_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**value, "privcy": {}}, editor_schema())


# -- what is wrong, and where ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (("epsilon = 1.0 ", "epsilom = 1.0 "), "'epsilom' is no known key; did you mean 'epsilon'?"),
        (('address = "127.0.0.3:1000"', ""), "'address' is missing; add it"),
        (('"127.0.0.3:1000"', '"host.example"'), 'address = "host.example:11365" under [[parties]]'),
        (("records = 250", 'records = "many"'), "owners[1].records: expected int | null, got str"),
        (("127.0.0.3:1000", "127.0.0.2:1000"), "127.0.0.2:1000 is that of party 0 for parties and of party 1"),
        (("127.0.0.3:1000", "127.0.0.2:1003"), "127.0.0.2:1003 is that of party 1 for parties and of party 0 for own"),
        (('name = "owner1"', 'name = "owner0"'), "every site has a name of its own; 'owner0' is there twice"),
        (('name = "owner1"', 'name = "party1"'), "a site is a party or an owner; 'party1' is both"),
        (('name = "owner1"', 'name = "../up"'), "a site's name has up to 40 letters"),
        (('target = "outcome"\n', ""), "add schema = 'FILE' to [records], or target and [records.bounds]"),
        (('# schema = "schema.toml"', 'schema = "s.toml"'), "bounds, target, positive, negative were given too"),
        (("# range = [0, 10]", "range = [0, 10]"), "a target has positive (and negative) values, or classes, or a"),
        (("age = [0, 120]", "age = [120, 0]"), "low < high; 'age' has [120, 0]"),
        (('# task = "logistic"', 'task = "ridge"'), "the task ridge is for a quantity; the target 'outcome' is two"),
        (("epsilon = 1.0  ", "epsilon = -1.0 "), "epsilon"),
        (("# threshold = 1              #", "threshold = 2 #"), "t = 2, n = 3"),
        (("# min_owners = 2 ", "min_owners = 7 "), "min_owners in [run] must lie in 1..3"),
        (("# tls = true", "tls = false"), ""),
    ],
)
def test_what_is_wrong_is_said_in_a_line_with_its_place(tmp_path: Path, pairs: tuple[str, ...], says: str) -> None:
    path = changed(written(tmp_path), *pairs)
    if says:
        assert says in refusal(path)
    else:
        assert not read_consortium(path).file.run.tls


def test_lines_are_named(tmp_path: Path) -> None:
    path = changed(written(tmp_path), "records = 250", "records = -0.5")
    line = path.read_text().splitlines().index("records = -0.5") + 1
    assert f"line {line}, owners[1].records: expected int | null, got float" in refusal(path)


def test_addresses_off_this_machine_need_tls(tmp_path: Path) -> None:
    path = write(tmp_path, text_of(Founding(tls=False)), "consortium.toml")
    assert "without TLS only loopback addresses" in refusal(path)


def test_with_role_both_every_owner_is_a_party_by_name(tmp_path: Path) -> None:
    path = changed(written(tmp_path, role="both"), 'name = "site2"\nrecords', 'name = "fourth"\nrecords')
    assert "'fourth' is owner but no party; give as many of both" in refusal(path)
    path = written(tmp_path, role="both", records=(40, 50))
    assert "'site2' is party but no owner" in refusal(path)
    # their order does not matter: sizes follow the parties
    text = written(tmp_path, role="both").read_text()
    swapped = text.replace('name = "site0"\nrecords = 400', 'name = "X"\nrecords = 250').replace(
        'name = "site1"\nrecords = 250', 'name = "site0"\nrecords = 400'
    )
    found = read_consortium(write(tmp_path, swapped.replace('"X"', '"site1"'), "consortium.toml"))
    assert found.plan.sizes == (400, 250, 900) and found.plan.role == "both"
    assert [site.role for site in found.sites] == ["site0", "site1", "site2"]


# -- the plan ----------------------------------------------------------------------------------------------------------
def test_the_plan_says_what_the_file_says(tmp_path: Path) -> None:
    path = changed(
        alone(written(tmp_path, epsilon=0.5, method="gradient")),
        "# lam = 0.001                #",
        "lam = 0.25 #",
        '# neighbours = "record"      #',
        'neighbours = "owner" #',
        '# spread = "theta"           #',
        'spread = "fixed" #',
        "# min_owners = 2             #",
        "min_owners = 2 #",
        "# grid_bits = 20             #",
        "grid_bits = 15 #",
    )
    plan = read_consortium(path).plan
    assert (plan.epsilon, plan.delta, plan.releases, plan.sizes) == (0.5, 1e-5, 3, (400, 250, 900))
    assert (plan.learning.lam, plan.learning.spread, plan.neighbours) == (0.25, "fixed", "owner")
    assert (plan.min_owners, plan.grid_bits, plan.parties, plan.threshold) == (2, 15, 3, 1)
    assert plan.schema is not None and [column["name"] for column in plan.schema["columns"]] == ["age", "sex"]
    again = read_consortium(path).plan
    assert again == plan  # the run id follows from the file
    other = read_consortium(changed(path, "age = [0, 120]", "age = [0, 121]")).plan
    assert other.run_id != plan.run_id


def test_a_schema_file_lies_beside_it(tmp_path: Path) -> None:
    inside = read_consortium(alone(written(tmp_path)))
    inside.schema.write(tmp_path / "mine.json")
    found = read_consortium(written(tmp_path, schema="mine.json"))
    assert found.schema == inside.schema and found.plan.schema == inside.plan.schema
    (tmp_path / "mine.json").unlink()
    assert "a schema file must be readable" in refusal(tmp_path / "consortium.toml")


def test_the_commands_write_what_the_functions_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def dpmpc(words: str) -> str:
        done = CliRunner().invoke(cli.group, shlex.split(words), catch_exceptions=True)
        assert done.exception is None or isinstance(done.exception, UsageError | SystemExit), done.exception
        return done.output + (str(done.exception) if isinstance(done.exception, UsageError) else "")

    sites = " ".join(f"-P {address}" for address in HERE)
    assert "edit it" in dpmpc(f"init {sites} --owner-sizes 10,20,30,40 --iterations 3")
    assert "a file is not overwritten" in dpmpc("init")
    jsonschema.validate(
        tomllib.loads(Path("consortium.toml").read_text()), json.loads(Path("consortium.schema.json").read_text())
    )
    said = dpmpc("plan consortium.toml")
    assert "4 owners, at most 5 coordinates, 3 releases, after a survey" in said
    assert "epsilon = 1, delta = 1e-05" in said
    assert "127.0.0.3:1000" in said and "exchanges" in said
    assert Plan.read("plan.json") == read_consortium(Path("consortium.toml")).plan
    said = dpmpc("kit consortium.toml --out kits")
    assert "owner3" in said and "the authority; keep it to yourself" in said
    assert sorted(p.name for p in Path("kits").iterdir()) == [f"owner{j}" for j in range(4)] + [
        f"party{i}" for i in range(3)
    ]
    assert Plan.read("kits/owner3/plan.json") == Plan.read("plan.json")
    assert "kits go into a new or empty folder" in dpmpc("kit consortium.toml --out kits")
    assert "is no kit" in dpmpc("keys request party0")
    assert "kits/party0/keys/party0.csr: send this" in dpmpc("keys request kits/party0")
    assert "-P is given once for each party" in dpmpc("init --overwrite -M 2 -P a -P b -P c")
    assert "sizes are whole numbers with commas between" in dpmpc("init --overwrite --owner-sizes 3,x")


# -- the kits ----------------------------------------------------------------------------------------------------------
def kits(folder: Path, **changes: Any) -> Path:
    write_kits(read_consortium(written(folder, **changes)), folder / "kits", folder / "authority")
    return folder / "kits"


@pytest.mark.parametrize("role", ["apart", "both"])
def test_a_kit_has_nothing_secret_and_limits_that_its_plan_keeps(tmp_path: Path, role: str) -> None:
    changes: dict[str, Any] = {"role": role}
    for folder in kits(tmp_path, **changes).iterdir():
        files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert files == {
            "plan.json", "schema.json", "keys/ca.crt", "limits.toml", "site.toml", "README.md", "site.service",
            "compose.yaml",
        }  # fmt: skip
        assert not any(b"PRIVATE" in (folder / name).read_bytes() for name in files)
        kit = read_kit(folder)
        limits = Limits.read(folder / "limits.toml")
        limits.check(kit.plan)
        with pytest.raises(UsageError):
            Limits.read(write(folder, (folder / "limits.toml").read_text().replace("1.0", "0.9"), "l.toml")).check(
                kit.plan
            )
        text = (folder / "README.md").read_text()
        assert len(text.splitlines()) <= 12
        site, party, owner = read_kit(folder).site, "is a party" in text, "an owner" in text
        verdict = f"`dpmpc verify . --structure --out verify_{site.role}.json`"
        assert (verdict in text, "`dpmpc report .`" in text) == (party, owner)


def test_a_kit_names_the_wheel_by_what_is_in_it_and_never_by_a_bare_name(tmp_path: Path) -> None:
    """A name that nobody owns is anybody's: root would install what a stranger put there. The line's own check holds
    for the file and for no other."""
    wheel = tmp_path / "dpmpc-0.2.0-cp311-abi3-linux_x86_64.whl"
    wheel.write_bytes(b"a wheel")
    consortium = read_consortium(written(tmp_path))
    write_kits(consortium, tmp_path / "named", tmp_path / "authority", wheel_of(wheel))
    write_kits(consortium, tmp_path / "unnamed", tmp_path / "authority2")
    for unit in tmp_path.glob("*named/*/site.service"):
        text = unit.read_text()
        for words in re.findall(r"pip install (.*)", text):
            assert words.startswith("./dpmpc-") and words.endswith(".whl"), words
        assert text.count("sha256sum") == 1
        if "unnamed" not in str(unit):
            line = text[text.index("echo ") : text.index(" \\\n")]
            assert subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True).returncode == 0
            (tmp_path / "other").mkdir(exist_ok=True)
            (tmp_path / "other" / wheel.name).write_bytes(b"another wheel")
            assert subprocess.run(line, shell=True, cwd=tmp_path / "other", capture_output=True).returncode
    with refuses("file", "other.whl", setting="wheel"):
        wheel_of(tmp_path / "other.whl")


def test_limits_of_the_file_reach_every_kit(tmp_path: Path) -> None:
    path = changed(
        written(tmp_path),
        '# budget = "2,1e-5"',
        'budget = "3,2e-5"',
        "[limits]\n# epsilon = 1.0",
        "[limits]\nepsilon = inf",
    )
    write_kits(read_consortium(path), tmp_path / "kits", tmp_path / "authority")
    found = [Limits.read(folder / "limits.toml") for folder in (tmp_path / "kits").iterdir()]
    assert len(found) == 6 and all(limits.budget == "3,2e-5" and limits.epsilon == math.inf for limits in found)


@pytest.mark.parametrize("role", ["apart", "both"])
@pytest.mark.parametrize("tls", [True, False])
def test_units_compose_files_and_readmes_name_commands_that_exist(tmp_path: Path, role: str, tls: bool) -> None:
    """Parsed as their own tools do; each command's options are parsed by click."""
    changes: dict[str, Any] = {"role": role, "tls": tls}
    for folder in kits(tmp_path, **changes).iterdir():
        kit = read_kit(folder)
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read(folder / "site.service")
        assert unit["Service"]["User"] == "dpmpc" and not unit["Service"]["ExecStart"].startswith(("/home", "/root"))
        if shutil.which("systemd-analyze") and kit.number == 0 and Path("/opt/dpmpc/bin/dpmpc").exists():
            done = subprocess.run(
                ["systemd-analyze", "verify", folder / "site.service"], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
        home = re.findall(r"--home-dir (\S+)", (folder / "site.service").read_text())[0]
        can_be_written = unit["Service"]["ReadWritePaths"].split()
        for place in (Path(home) / "." / kit.site.name, account_folder({}, "linux", Path(home))):
            assert any(place.is_relative_to(each) for each in can_be_written), place  # all else is read-only
        start = shlex.split(unit["Service"]["ExecStart"])
        assert start[0] == "/opt/dpmpc/bin/dpmpc" and parsed(start[1:])["kit"] == Path(".")
        services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
        (service,) = services.values()
        found = parsed(service["command"])
        assert found["kit"] == Path("/kit") and ".:/kit" in service["volumes"]
        assert service["read_only"] and service["environment"] == {"DPMPC_ACCOUNT": "/account"}
        assert f"${{DPMPC_ACCOUNT:-{ACCOUNT}}}:/account" in service["volumes"]  # what the user's other runs count in
        assert Path(ACCOUNT).expanduser() == account_folder({}, "linux")
        assert (found["csv"] is not None) == (kit.kind != "owner" or True) * (kit.kind != "party")
        if tls and kit.kind != "owner":
            port = kit.site.addresses[kit.number].split(":")[1]
            assert found["listen"] == f"0.0.0.0:{port}"
            assert service["ports"] == [f"{port}:{port}", f"{int(port) + 3}:{int(port) + 3}"]
        else:
            assert "ports" not in service and (service.get("network_mode") == "host") == (not tls)
        assert (unit["Service"]["Restart"], service["restart"]) == ("on-failure", "on-failure")
        for words in re.findall(r"`(dpmpc [^`]*)`", (folder / "README.md").read_text()):
            parsed(shlex.split(words)[1:])


def test_a_dry_run_says_what_the_budget_would_refuse(tmp_path: Path) -> None:
    """As the run would, before it: nothing is reserved, and one that has begun is held against it when it goes on."""
    kit = read_kit(kits(tmp_path) / "owner0")
    assert not check_room(kit.plan, where_of(kit, Joining.of()), None)
    plain = (kit.folder / "limits.toml").read_text()
    write(kit.folder, plain + 'budget = "5,1e-5"\n', "limits.toml")
    assert check_room(kit.plan, where_of(kit, Joining.of()), None)
    write(kit.folder, plain + 'budget = "0.2,1e-9"\n', "limits.toml")
    where = where_of(kit, Joining.of())
    with refuses("budget", "our records", setting="budget"):
        check_room(kit.plan, where, None)
    where.out.mkdir()
    (where.out / "owners.ledger.jsonl").write_text("")
    assert not check_room(kit.plan, where, None)


# -- what join refuses -------------------------------------------------------------------------------------------------
def says(folder: Path, words: str, **own: Any) -> None:
    with pytest.raises(UsageError) as caught:
        join(folder, Joining.of(**own), lambda event: None)
    assert words in owner_text(caught.value) and "\n" not in owner_text(caught.value), caught.value


def test_a_site_without_its_key_or_certificate_does_not_start(tmp_path: Path) -> None:
    found = kits(tmp_path)
    site, authority = found / "party0", tmp_path / "authority"
    says(site, f"party0.key; make it with `dpmpc keys request {site}`")
    request = make_request(site / "keys", "party0")
    says(site, "a key must be signed by the authority")
    sign_request(tmp_path / "another", request, "party0", tmp_path / "elsewhere")
    (site / "keys" / "party0.crt").write_bytes((tmp_path / "elsewhere" / "party0.crt").read_bytes())
    says(site, "a certificate comes from an authority of this run")
    with refuses("keys", tmp_path / "elsewhere"):
        sign_request(authority, request, "party1", tmp_path / "elsewhere")
    sign_request(authority, request, "party1", tmp_path / "back")
    (site / "keys" / "party0.crt").write_bytes((tmp_path / "back" / "party1.crt").read_bytes())
    says(site, "is not for party0; have it signed again")
    with refuses("keys", "party1", "party0"):
        sign_request(authority, request, "party0", site / "keys")
    (authority / "signed.txt").write_text("")
    sign_request(authority, request, "party0", site / "keys")
    other = make_request(tmp_path / "other", "party0")
    own = (site / "keys" / "party0.key").read_bytes()
    (site / "keys" / "party0.key").write_bytes(other.with_suffix(".key").read_bytes())
    says(site, "a certificate must be for the key beside it")
    (site / "keys" / "party0.key").write_text("nothing")
    says(site, "party0.key cannot be read as one; move it away")
    (site / "keys" / "party0.key").write_bytes(own)
    (site / "keys" / "party0.crt").write_text("no certificate")
    says(site, "party0.crt cannot be read as one; get it again")
    sign_request(authority, request, "party0", site / "keys")
    check_keys(read_kit(site))
    for mode in (0o644, 0o660, 0o601):
        (site / "keys" / "party0.key").chmod(mode)
        with refuses("keys", f"mode {mode:o}", site / "keys" / "party0.key"):
            check_keys(read_kit(site))
    (site / "keys" / "party0.key").chmod(0o640)  # a group's, as where secrets are mounted
    check_keys(read_kit(site))
    (site / "keys" / "ca.crt").unlink()
    says(site, "ca.crt is missing; get the kit again")


def test_a_certificate_that_is_not_valid_now_is_refused_with_its_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = kits(tmp_path) / "party0"
    monkeypatch.setattr(credentials, "_DAYS", -0.001)
    sign_request(tmp_path / "authority", make_request(site / "keys", "party0"), "party0", site / "keys")
    says(site, "a certificate is valid for a time")


def test_a_site_waits_for_its_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it waits for others, and says once for what. `check_keys` is what goes on once it is in step."""
    site = kits(tmp_path) / "party0"
    request = make_request(site / "keys", "party0")
    sign_request(tmp_path / "authority", request, "party0", tmp_path / "first")  # the authority's own is valid now
    monkeypatch.setattr(credentials, "_EARLY", -datetime.timedelta(days=1))
    sign_request(tmp_path / "authority", request, "party0", site / "keys")
    told: list[str] = []
    with refuses("not-yet", "party0.crt"):
        join(site, Joining.of(wait=0.5), lambda event: told.append(event["text"]))
    assert len(told) == 1 and told[0].startswith("waiting for its own clock (party0.crt is valid from ")


def test_a_certificate_of_a_site_is_for_both_of_its_roles(tmp_path: Path) -> None:
    site = kits(tmp_path, role="both") / "site1"
    sign_request(tmp_path / "authority", make_request(site / "keys", "site1"), "site1", site / "keys")
    check_keys(read_kit(site))
    sign_request(tmp_path / "authority", site / "keys" / "site1.csr", "party1", tmp_path / "half")
    (site / "keys" / "site1.crt").write_bytes((tmp_path / "half" / "party1.crt").read_bytes())
    says(site, "is not for owner1", csv="x.csv")


def test_records_are_for_owners_and_plans_are_those_of_the_kit(tmp_path: Path) -> None:
    found = kits(tmp_path, tls=False)
    says(found / "party0", "party0 is a party, which has no records; --csv was given", csv="x.csv")
    says(found / "owner1", "holds records; none were named; add csv=FILE")
    says(found / "owner1", "one source of records", csv="x.csv", records="y")
    says(found, "has no site.toml; name the folder of one site")
    bad = write(tmp_path, "age,sex,outcome\n1,f,ill\n2,m,well\n", "two.csv")
    says(found / "owner1", "owners hold as many training records as the plan says, 250; these are 2", csv=str(bad))
    bad = write(tmp_path, "age,outcome\n1,ill\n2,well\n", "column.csv")
    says(found / "owner1", "sex", csv=str(bad))
    (found / "owner1" / "limits.toml").write_text("epsilon = 0.5\ndelta = 1e-5\n")
    says(found / "owner1", "the limit is 0.5 at delta 1e-05", csv=str(bad))
    other = read_consortium(changed(tmp_path / "consortium.toml", "iterations = 3", "iterations = 4")).plan
    other.write(found / "party2" / "plan.json")
    says(found / "party2", "is another; get the kit again")


def test_check_holds_records_against_what_a_kits_plan_says_of_that_site(tmp_path: Path) -> None:
    """A file as long as another owner's is refused beside a kit's plan, as `join` does, and not elsewhere."""
    found = kits(tmp_path, tls=False)
    plans = [found / f"owner{k}" / "plan.json" for k in (0, 1)]
    assert [owner_of_kit(plan) for plan in plans] == [0, 1]
    assert owner_of_kit(found / "party0" / "plan.json") is None
    sizes = Plan.read(plans[0]).all_sizes
    assert sizes[0] != sizes[1]
    mine = write(tmp_path, "age,sex,outcome\n" + "50,f,ill\n" * (sizes[0] - 1) + "50,m,well\n", "mine.csv")
    alone = tmp_path / "plan.json"
    alone.write_bytes(plans[1].read_bytes())
    codes = [
        CliRunner().invoke(check_command, ["--plan", str(plan), "--csv", str(mine)], standalone_mode=False).return_value
        for plan in (*plans, alone)
    ]
    assert codes == [0, 1, 0]


def test_what_a_site_says_goes_before_what_the_kit_says(tmp_path: Path) -> None:
    path = changed(
        written(tmp_path),
        '# listen = "0.0.0.0:11365"   #',
        'listen = "0.0.0.0:7" #',
        "# threads = 2  ",
        "threads = 2  ",
    )
    write_kits(read_consortium(path), tmp_path / "kits", tmp_path / "authority")
    kit = read_kit(tmp_path / "kits" / "party0")
    where = where_of(kit, Joining.of())
    assert (where.listen, where.threads, where.wait, where.stall) == ("0.0.0.0:7", 2, 600.0, 60.0)
    assert where.out == kit.folder / "run" and where.index == "0" and where.tls == kit.keys
    own = where_of(kit, Joining.of(listen="[::]:8", threads=1, wait=5.0, stall=9.0, out=tmp_path / "here"))
    assert (own.listen, own.threads, own.wait, own.stall, own.out) == ("[::]:8", 1, 5.0, 9.0, tmp_path / "here")
    assert request_of(kit, Joining.of()) is None
    owner = read_kit(tmp_path / "kits" / "owner2")
    assert where_of(owner, Joining.of()).index == "owner2"
    asked = request_of(owner, Joining.of(csv="mine.csv", memory="1GB"))
    assert asked is not None and asked.csv == "mine.csv" and asked.planned and asked.epsilon == 1.0


def test_a_taken_port_is_told_by_its_place_in_the_file(tmp_path: Path) -> None:
    folder = kits(tmp_path, tls=False) / "party1"
    site = read_kit(folder).site
    host, port = site.addresses[1].rsplit(":", 1)
    with socket.socket() as taken:
        taken.bind((host, 0))
        taken.listen()
        file = folder / "site.toml"
        file.write_text(file.read_text().replace(f":{port}", f":{taken.getsockname()[1]}"))
        with refuses("not-yet", "consortium.toml", setting="listen") as caught:
            join(folder, Joining.of(wait=0.1), lambda event: None)
    assert "under [[parties]] of consortium.toml" in owner_text(caught.value) and not re.search(
        r"-[BPI]\b", owner_text(caught.value)
    )


def test_every_way_out_is_one_that_a_site_has() -> None:
    """All settings that errors of the programs below name: none is spelt as a flag of `dpmpc train -I`."""
    names = set()
    for path in (ROOT / "dpmpc").rglob("*.py"):
        names |= set(re.findall(r"<<([a-z_]+)", path.read_text(encoding="utf-8")))
    assert len(names) > 30
    for name in names:
        assert not re.search(r"(?<![\w-])-[A-Z]\b", kit_spelling(name, "1") + kit_spelling(name, None)), name


# -- questions ---------------------------------------------------------------------------------------------------------
ASKS = """
[run]
data_id = "registry"
tls = false
{run}
{parties}
[[owners]]
name = "{0}"
records = 3000
[[owners]]
name = "{1}"
records = 4000
[[owners]]
name = "{2}"
records = 5000
[records.bounds]
age = [0, 100]
sex = ["f", "m"]
[stats]
queries = {queries}
{more}
[privacy]
epsilon = 1
delta = 1e-5
"""


def asks(folder: Path, queries: str = '["table(sex)", "median(age)"]', run: str = "", more: str = "") -> Path:
    owners = ("a", "b", "c") if run else ("x", "y", "z")
    parties = "".join(f'[[parties]]\nname = "{n}"\naddress = "{a}"\n' for n, a in zip("abc", HERE, strict=False))
    text = ASKS.format(*owners, run=run, parties=parties, queries=queries, more=more)
    return write(folder, text, "consortium.toml")


@pytest.mark.parametrize("run", ["", 'role = "both"'])
def test_a_file_of_questions_is_a_plan_of_one_release(tmp_path: Path, run: str) -> None:
    one, again = (read_consortium(asks(tmp_path, run=run)).plan for _ in range(2))
    assert one == again and one.run_id == again.run_id and isinstance(one.source, Tables)
    assert (one.releases, one.sizes, one.weights, one.schema) == (1, (3000, 4000, 5000), "size", None)
    assert one.names is not None and one.names.parties == ("a", "b", "c")
    other = read_consortium(asks(tmp_path, '["table(sex)"]', run)).plan
    assert other.run_id != one.run_id
    folder = write_kits(read_consortium(asks(tmp_path, run=run)), tmp_path / "kits", tmp_path / "authority")[0]
    kit = read_kit(folder)
    assert kit.plan == one and not (folder / "schema.json").exists()
    Limits.read(folder / "limits.toml").check(kit.plan)
    asked = request_of(read_kit(tmp_path / "kits" / ("a" if run else "x")), Joining.of(csv="mine.csv"))
    assert asked is not None and asked.csv == "mine.csv" and asked.epsilon == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"more": "[learning]\niterations = 3"}, "or target and [records.bounds]"),
        ({"queries": '["median(aeg)"]'}, "did you mean 'age'?"),
        ({"queries": "[]"}, "queries"),
        ({"queries": '["hist(age, bins=5000) by sex"]'}, "off"),
        ({"run": 'role = "both"\nmin_owners = 2'}, "min_owners"),
        ({"more": "models = { risk = 'nowhere' }"}, "nowhere is not there"),
    ],
)
def test_questions_that_no_run_can_answer_are_refused(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_consortium(asks(tmp_path, **changes))
    assert words in owner_text(caught.value), caught.value


def test_a_file_of_a_synthetic_table_is_a_plan_of_two_releases(tmp_path: Path) -> None:
    """Under one promise, a quarter of mu^2 for the first; the kit's limits take it. What cannot be made is refused."""
    text = asks(tmp_path).read_text()
    asked = '[stats]\nqueries = ["table(sex)", "median(age)"]\n'
    one = read_consortium(write(tmp_path, text.replace(asked, "[synth]\ncells = 6\n"), "consortium.toml"))
    spelt = read_consortium(
        write(tmp_path, text.replace(asked, "[synth]\ncells = 6\ndigits.age = 1\n"), "consortium.toml")
    )
    assert isinstance(spelt.plan.source, Synthesis) and spelt.plan.source.digits == (("age", 1),)
    assert isinstance(one.plan.source, Synthesis) and (one.plan.epsilon, len(one.plan.before)) == (1, 1)
    folder = write_kits(one, tmp_path / "kits", tmp_path / "authority")[0]
    Limits.read(folder / "limits.toml").check(read_kit(folder).plan)
    assert "run/synthetic.parquet" in (folder / "README.md").read_text()
    dated = text.replace(asked, "[synth]\n").replace(
        "age = [0, 100]", 'age = [0, 100]\nseen = ["2020-01-01", "2021-03-04"]'
    )
    found = read_consortium(write(tmp_path, dated, "consortium.toml")).plan
    assert (found.epsilon, len(found.before)) == (1, 2) and found.source.schedule.before[0].name == "survey"
    assert isinstance(found.source, Synthesis) and found.source.questions.names == ("age", "seen")
    for part, words in (
        (asked + "[synth]\ncells = 6\n", "[stats] asks and [synth] makes rows; a run does one of them"),
        ("[synth]\ncells = 6\n[learning]\niterations = 3\n", "[synth] makes rows and [learning] trains"),
        ('[synth]\ncells = 6\ntarget = "aeg"\n', "did you mean 'age'?"),
        ('[synth]\ncells = 6\nconstraints = ["aeg = 3"]\n', "did you mean 'age'?"),
        ("[synth]\ncells = 3000\n", "noise alone would move"),
        ("[synth]\ncells = 6\ndigits = { sex = 1 }\n", "0 to 12 decimals of a column of numbers"),
    ):
        with pytest.raises(UsageError) as caught:
            read_consortium(write(tmp_path, text.replace(asked, part), "consortium.toml"))
        assert words in owner_text(caught.value), caught.value


def test_what_may_be_asked_is_said_in_public(tmp_path: Path) -> None:
    text = asks(tmp_path).read_text().replace("[records.bounds]", "[records]").replace("age = [0, 100]", "")
    with refuses("missing", "[records.bounds]"):
        read_consortium(write(tmp_path, text.replace('sex = ["f", "m"]', ""), "consortium.toml"))
