"""Launch files: the launcher reads exactly what was written for it, also what the version before wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mas.model.launch import LaunchPlan, LimitPlan, NetworkPlan, Rules, Sign, StatePlan
from mas.store.agent.launch_plan import launch_path, read_plan, was_cut_short, write_plan
from tests.site import short_directory
from tests.store.samples import mode, put, read, umask

TEXT = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.binary(max_size=12).map(lambda data: os.fsdecode(data.replace(b"\0", b""))),
    st.sampled_from(["", "=", "==", "\n", "a=b", "-x", "'", '"', "\\"]),
)
ARGV = st.lists(TEXT, min_size=1, max_size=6).map(tuple)
VARIABLES = st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), TEXT, max_size=4)
PATHS = st.lists(TEXT.map("/".__add__)).map(tuple)
PLAIN = LaunchPlan(argv=("sh",), env={})

STATES = StatePlan(
    sources=("hooks", "title", "screen"),
    start_timeout=60.0,
    title_map=(Sign(match="^=", state="idle"), Sign(match="a=b", state="blocked", kind="permission")),
    titles_wait=True,
    dialogs=(Sign(match="a=b", state="blocked", kind="trust", hint="trust it first"), Sign(match="c", state="error")),
    screen_map=(Sign(match="^> ?$", state="idle"),),
    quiet=0.5,
    hook_map=(Sign(match="Stop", state="idle"), Sign(match="Asks", state="blocked", kind="permission")),
    answer_hook="Permission",
    answer_timeout=300.0,
)
RULES = Rules(
    tier="A",
    how="namespaces",
    root="listed",
    write=("/w", "/a\nb"),
    binds=(("/s/tmp", "/tmp"), ("/s/tmp2", "/var/tmp")),
    copies=(("/s/etc", "/etc"),),
    read=("/r",),
    links=(("/bin", "usr/bin"),),
    hide=("/h", "/i"),
    ports=(80, 443),
    connect=(7717,),
    system_calls=("ptrace",),
    filter="0600000000000000",
    account=(1, 2),
    own=("/own",),
    shared_root="/roots/one",
    shared_memory=1 << 20,
)
LIMITS = LimitPlan(
    groups=("/sys/fs/cgroup/a", "/sys/fs/cgroup/b"),
    files=100,
    file_size=8,
    data=9,
    processes=10,
    most_memory=11,
    most_processes=12,
    counts={"memory": ("memory.events", "oom_kill"), "processes": ("/g/pids.events", "max")},
    words={"memory": "memory limit reached", "processes": "full", "file_size": "large"},
)
NETWORK = NetworkPlan(
    directory="/s/.mas/network",
    listen=(("127.0.0.1", 5432), ("127.64.0.1", 8443)),
    pasta="/usr/bin/pasta",
    mark=7 << 55 | 127,
)
FULL = LaunchPlan(
    argv=("sh", "", "-c"),
    env={"A": "b=c", "B": ""},
    mark=(1 << 61) + 5,
    nofile=1024,
    opener=7,
    lazy="/unit/00",
    restart="always",
    restart_limit=3,
    resume=("sh", "--resume"),
    resume_if="*.log",
    isolation=RULES,
    network=NETWORK,
    limits=LIMITS,
    states=STATES,
    spool=True,
    quit_keys=("03", "1b5b41"),
    quit_timeout=5.0,
)
# As the version before wrote it.
OLD = b"\0\0".join(
    (
        b"=sh\0=\0=-c",
        b"A=b=c\0B=",
        b"\0".join(
            (
                b"nofile=1024", b"limits=1", b"words_memory=memory limit reached", b"words_processes=full",
                b"words_file_size=large", b"limit_files=100", b"limit_file_size=8", b"limit_data=9",
                b"limit_processes=10", b"sum_memory=11", b"sum_processes=12",
                b"limit_groups=/sys/fs/cgroup/a\n/sys/fs/cgroup/b", b"count_memory=scope:memory.events oom_kill",
                b"count_processes=/g/pids.events max", b"opener=7", b"lazy=/unit/00", b"restart=always",
                b"restart_limit=3", b"resume_if=*.log", b"spool=1", b"isolation=A namespaces",
                b"isolation.write.0=/w", b"isolation.write.1=/a\nb", b"isolation.read.0=/r", b"isolation.hide.0=/h",
                b"isolation.hide.1=/i", b"isolation.source.0=/s/tmp", b"isolation.target.0=/tmp",
                b"isolation.source.1=/s/tmp2", b"isolation.target.1=/var/tmp", b"isolation.ports=80,443",
                b"isolation.account=1:2", b"sources=hooks,title,screen", b"start_timeout=60",
                b"dialogs=blocked:trust=a=b\ttrust it first\nerror:=c\t", b"screen_map=idle=^> ?$", b"quiet=0.5",
                b"titles_from=hooks", b"title_map=idle=^=\nblocked:permission=a=b",
                b"hook_map=Stop=idle\nAsks=blocked:permission", b"answer_hook=Permission", b"answer_timeout=300.0",
                b"quit_keys=03 1b5b41", b"quit_timeout=5",
            )
        ),
        b"=sh\0=--resume",
    )
)  # fmt: skip


@pytest.fixture
def path(place: str) -> str:
    return os.path.join(place, "launch")


def test_every_field_of_a_plan_reads_back_as_it_was_written(path: str) -> None:
    for record in (FULL, RULES, NETWORK, LIMITS, STATES):
        assert vars(record).keys() == type(record).__annotations__.keys(), "a field that this test does not try"
    write_plan(path, FULL)
    assert read_plan(path) == FULL
    write_plan(path, PLAIN)
    assert read_plan(path) == PLAIN != FULL


@given(ARGV, VARIABLES, PATHS)
@example(("",), {}, ())
@example(("", "", ""), {"A": ""}, ("/\udc80",))
def test_a_plan_holds_whatever_arguments_variables_and_paths_hold(
    argv: tuple[str, ...], env: dict[str, str], paths: tuple[str, ...]
) -> None:
    plan = LaunchPlan(argv=argv, env=env, isolation=RULES.but(write=paths, binds=tuple(zip(paths, paths, strict=True))))
    with short_directory() as directory:
        path = os.path.join(directory, "launch")
        write_plan(path, plan)
        assert read_plan(path) == plan


def test_a_file_of_the_version_before_is_read_but_for_the_keys_to_quit_by(path: str) -> None:
    with open(path, "wb") as file:
        file.write(OLD)
    newer = {"root": "all", "copies": (), "links": (), "connect": (), "system_calls": (), "shared_memory": 64 << 20}
    newer |= {"filter": "", "own": (), "shared_root": ""}
    without = {"mark": 0, "network": None, "quit_keys": (), "quit_timeout": 0.0}
    assert read_plan(path) == FULL.but(**without, isolation=RULES.but(**newer))
    with open(path, "wb") as file:
        file.write(b"=sh\0\0\0\0")
    assert read_plan(path) == PLAIN


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff",
        b"=sh",
        b"3\n{}",
        b"2\n",
        b"2\n{",
        b"2\n[]",
        b'2\n{"argv":["sh"]}',
        b'2\n{"argv":["sh"],"env":{},"other":1}',
        b'2\n{"argv":["sh"],"env":{},"isolation":{"tier":"A"}}',
        b'2\n{"argv":["sh"],"env":{},"states":5}',
        b"2\n" + b"[" * 100_000,
    ],
)
def test_what_is_no_plan_is_never_taken_for_an_empty_one(path: str, damaged: bytes) -> None:
    with open(path, "wb") as file:
        file.write(damaged)
    with pytest.raises(ValueError):
        read_plan(path)


def test_a_plan_without_a_field_or_with_one_too_many_cannot_be_made() -> None:
    given: dict[str, object] = {"match": "x"}
    for record in (given, given | {"state": "idle", "sate": "idle"}):
        with pytest.raises(TypeError):
            Sign(**record)  # type: ignore[arg-type]
    assert Sign(match="x", state="idle") != Sign(match="x", state="working")


def test_a_shorter_launch_leaves_nothing_of_a_longer_one(path: str) -> None:
    write_plan(path, PLAIN.but(argv=("sh", "x" * 5000)))
    write_plan(path, PLAIN)
    assert read_plan(path) == PLAIN


def test_a_launch_is_private_and_never_written_through_a_link(place: str, path: str) -> None:
    with umask(0):
        write_plan(path, PLAIN)
    assert mode(path) == 0o600
    other = put(place, "other", "mine")
    os.unlink(path)
    os.symlink(other, path)
    with pytest.raises(OSError):
        write_plan(path, PLAIN)
    assert read(other) == b"mine"


def test_each_agent_has_its_own_launch() -> None:
    assert launch_path("/s", "00") == "/s/.mas/launch/00"


@pytest.mark.parametrize(
    ("intent", "cut_short"),
    [
        ('{"session_id": "x", "verb": "start", "pid": 7, "at": ""}\n', True),
        ('{"pid":7,"verb":"restore"}', True),
        ('{"verb": "start", "pid": 70}', False),
        ('{"verb": "stop", "pid": 7, "agent": "\\"verb\\": \\"start\\""}', False),
        ('{"verb": "start", "pid": 7, "at"', False),
        ('["start", 7]', False),
        ("", False),
    ],
)
def test_a_team_was_cut_short_if_its_openers_intent_still_exists(tmp_path: Path, intent: str, cut_short: bool) -> None:
    intents = tmp_path / ".mas" / "intents"
    intents.mkdir(parents=True)
    assert not was_cut_short(str(tmp_path / "x"), 7)
    (intents / "x").write_text(intent)
    assert was_cut_short(str(tmp_path / "x"), 7) == cut_short
