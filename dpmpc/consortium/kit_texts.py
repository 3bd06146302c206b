"""The texts in a kit: what to do, and how a machine's own tools start it (a systemd unit, a compose file)."""

from dpmpc.consortium.wheel import Wheel, installing
from dpmpc.lazy import dataclass

SITE_HEAD = "# Which process of which plan this site starts, and where the parties are. Written by `dpmpc kit`.\n"
LIMITS_HEAD = """\
# What this site takes part in; `dpmpc join` holds the plan against it before anything is sent.
# It begins with what the plan says of itself: put here what YOUR organisation accepts.
# A budget of all runs on these records: budget = "2,2e-5".
"""
_HOME = "/opt/dpmpc"  # the environment that has the program
ACCOUNT = "~/.local/share/dpmpc/account"  # of a user on Linux, unless it says otherwise


@dataclass(frozen=True)
class About:
    """What the texts say. `port`: of a party, for parties; for owners it is `port` + `parties`. `ids`: as of
    `parting.ids_wanted`. `by_owner`: whether what is opened tells of single organisations. `wheel`: what sites
    install."""

    name: str
    role: str
    run_id: str
    owner: bool
    tls: bool
    port: int | None
    parties: int
    version: str
    result: str
    ids: str = ""
    by_owner: bool = False
    wheel: Wheel | None = None


def files(about: About) -> dict[str, str]:
    """Name -> text."""
    return {"README.md": _readme(about), "site.service": _unit(about), "compose.yaml": _compose(about)}


def _called(about: About) -> str:
    """The site's own name, with its role beside it."""
    return about.name if about.name == about.role else f"{about.name} ({about.role})"


def join_words(about: About, kit: str = ".", records: str = "records.csv") -> list[str]:
    """The command that starts the site."""
    return ["dpmpc", "join", kit, *(("--csv", records) if about.owner else ())]


def _readme(about: About) -> str:
    what = {"party": "a party: it computes on shares, and has no records", "owner": "an owner: it holds records"}
    kind = what.get(about.role.rstrip("0123456789"), "a party and an owner, in one process")
    steps = ["Read limits.toml: what your organisation takes part in. Change it where you accept less."]
    if about.by_owner:
        steps += [
            "This run opens counts of every organisation by itself, each with the noise. If yours agrees, add "
            "`by_owner = true` to limits.toml; without, it takes no part."
        ]
    if about.tls:
        steps += [
            f"`dpmpc keys request .` makes a key, which stays here; send `keys/{about.role}.csr` to the authority.",
            f"Put the `{about.role}.crt` that comes back into `keys`. A list of all sites' keys comes too: "
            "`dpmpc keys accept . --list sites.txt`. Read its number to the others by voice; who signs could else be "
            "any of them.",
        ]
    if about.port is not None:
        steps += [f"Others must reach port {about.port} (parties) and {about.port + about.parties} (owners) here."]
    if about.owner:
        steps += [
            "`dpmpc check --plan plan.json --csv records.csv` shows how your records fit; for your eyes only. "
            "`dpmpc describe --csv records.csv` names options for decimal commas, dates and the like: they go to "
            "check, join and predict."
        ]
        if about.ids:
            whose = "" if about.ids == "all" else " of a database, or of a file that grows,"
            steps += [
                f"Some records are held out to judge the model. Name the column by which records{whose} are known "
                "again: `--id COLUMN`, of check and join."
            ]
    steps += [f"`{' '.join(join_words(about))} --dry-run`, with all sites, tries everything before the day."]
    steps += [f"`{' '.join(join_words(about))}` takes part; {about.result}."]
    if about.port is not None:
        verdict = f"verify_{about.role}.json"
        steps += [
            f"Then `dpmpc verify . --structure --out {verdict}` checks what this party did. Send owners that file."
        ]
    if about.owner:
        steps += [
            "`dpmpc report .` writes the page for who answers for the data, with parties' `verify_*.json` in `run`."
        ]
    steps += ["`dpmpc status .` says how far it is. site.service and compose.yaml start the same."]
    lines = [f"# {about.name}: {about.role} of run {about.run_id}", f"This site is {kind}."]
    lines += [f"{k}. {step}" for k, step in enumerate(steps, 1)]
    return "\n".join(lines) + "\n"


def _unit(about: About) -> str:
    install = "\n".join(f"#   {line}" for line in installing(about.wheel, _HOME, about.version))
    return f"""\
# dpmpc in an environment of its own, under a user of its own; once, as root:
{install}
#   useradd --system --home-dir /srv/dpmpc --create-home --shell /usr/sbin/nologin dpmpc
# The kit{" with the records" if about.owner else ""} goes to /srv/dpmpc/{about.name} (chown -R dpmpc:dpmpc),
# this file to /etc/systemd/system/dpmpc-{about.name}.service; then systemctl start dpmpc-{about.name}.
# What is spent is counted in that user's home, over all kits: it and the kit alone can be written.
# A run ends by itself; `{_HOME}/bin/dpmpc status /srv/dpmpc/{about.name}` says how.
[Unit]
Description=dpmpc {_called(about)} of run {about.run_id}
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User=dpmpc
Group=dpmpc
WorkingDirectory=/srv/dpmpc/{about.name}
Environment=PATH={_HOME}/bin:/usr/bin:/bin
ExecStart={_HOME}/bin/{" ".join(join_words(about))} --log-json
# Stopped: it tells the others, and ends with 143.
SuccessExitStatus=143
KillMode=mixed
# Killed, or ended because another site was lost: the same command carries on. 2 and 4 are refusals.
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2 4
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=yes
ReadWritePaths=/srv/dpmpc

[Install]
WantedBy=multi-user.target
"""


def _compose(about: About) -> str:
    words = join_words(about, "/kit", "/records.csv")
    lines = [
        f"# {_called(about)} of run {about.run_id} in a container.",
        f"# The image: docker build -t dpmpc:{about.version} .",
        "# in the sources of dpmpc. The user is the kit's owner: DPMPC_USER=$(id -u):$(id -g) docker compose up",
        f"# What is spent is counted in the user's account, over all kits; once: mkdir -p {ACCOUNT}",
        "services:",
        f"  {about.name.lower()}:",
        f"    image: dpmpc:{about.version}",
        '    user: "${DPMPC_USER:-1000:1000}"',
        "    volumes:",
        "      - .:/kit",
        f"      - ${{DPMPC_ACCOUNT:-{ACCOUNT}}}:/account",
    ]
    if about.owner:
        lines += ["      - ./records.csv:/records.csv:ro"]
    if about.port is not None and about.tls:
        words += ["--listen", f"0.0.0.0:{about.port}"]
        ports = (about.port, about.port + about.parties)
        lines += ["    ports:", *(f'      - "{port}:{port}"' for port in ports)]
    elif not about.tls:
        lines += ["    network_mode: host  # without TLS all addresses are loopback ones"]
    words += ["--log-json"]
    lines += ["    environment: {DPMPC_ACCOUNT: /account}"]
    lines += [f"    command: [{', '.join(words[1:])}]", "    read_only: true", "    tmpfs: [/tmp]"]
    lines += ["    cap_drop: [ALL]", "    restart: on-failure"]
    return "\n".join(lines) + "\n"
