"""System calls: what is not listed is closed, what programs need is open, and a provider can open more."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from mas.model.launch import Rules
from mas.model.system_calls import ABSENT, ALLOWED, NEVER, OPENABLE, REFUSED_IN_B, UNSUPPORTED_IN_B
from tests.sandbox.house import House

MACHINE = ("x86_64", "aarch64").index(os.uname().machine)
OPEN = {name: pair for group in ALLOWED.values() for name, pair in group.items()}
LISTED = OPEN | OPENABLE | NEVER
# What the headers of newer kernels have; a test on one of those would find it missing here.
UNKNOWN = 1000
PYTHON = """
import asyncio, concurrent.futures, os, resource, sqlite3, ssl
print(list(concurrent.futures.ThreadPoolExecutor(4).map(abs, [-1])), asyncio.run(asyncio.sleep(0, 1)))
print(os.sched_getaffinity(0), resource.getrlimit(10), os.nice(0), sqlite3.connect("db").execute("select 1").fetchone())
"""
PROGRAMS = {
    "git": "git init -q r && cd r && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm m"
    " && git gc -q && git log --oneline | grep -c m",
    "gcc": "printf 'int main(void){return 7;}' > c.c && gcc -O2 -g c.c -o c; ./c; echo $?",
    "perl": "perl -e 'use POSIX; my $p = fork; exit 3 unless $p; waitpid $p, 0; print $? >> 8'",
    "node": "node -e \"const {Worker} = require('worker_threads'); require('os').networkInterfaces();"
    " new Worker('0', {eval: true}).on('exit', code => console.log('worker', code))\"",
    "npm": "npm --version",
    "cargo": f"HOME={os.path.expanduser('~')} cargo --version",
    "go": "go version",
    "java": "java -version 2>&1",
    "gdb": "gdb -q -batch -ex 'break main' -ex run -ex 'print 6*7' --args c 2>&1 | grep -F '= 42'",
    "strace": "strace -f -o trace true && grep -c exit_group trace",
    "make": "printf 'all: ; @echo made\\n' > Makefile && make -s",
    "tar": "mkdir -p d && echo x > d/f && chmod 755 d/f && tar cf d.tar d && rm -r d"
    " && tar xpf d.tar --no-same-owner && cat d/f",
    "rsync": "mkdir -p s && echo x > s/f && rsync -a s/ t/ && cat t/f",
    "python3": f"{sys.executable} -c '{PYTHON}'",
    "curl": "curl --version",
    "ssh": "ssh -V 2>&1",
    "nice": "nice -n 5 sh -c 'ulimit -n 100; nice'",
}
ONLY_IN_A = {"tmux": "tmux -S t.sock new-session -d cat && tmux -S t.sock ls | grep -c 0 && tmux -S t.sock kill-server"}


def number(name: str) -> int:
    return LISTED[name][MACHINE]


def test_every_call_of_this_kernels_headers_is_in_one_table_with_its_number() -> None:
    tables = [*OPEN, *OPENABLE, *NEVER, *ABSENT]
    assert len(tables) == len(set(tables))
    assert {*REFUSED_IN_B, *UNSUPPORTED_IN_B} <= set(OPEN)
    found = _headers()
    missing = set(found) - set(tables)
    # A newer header may know more of them: these are closed, which is the point.
    assert {name for name in missing if found[name] < 470} == set()
    assert {name: LISTED[name][MACHINE] for name in LISTED if name in found} == {
        name: one for name, one in found.items() if name in LISTED
    }


def _headers() -> dict[str, int]:
    """The calls of this machine by the C compiler's headers."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler, so no headers")
    source = "#include <asm/unistd.h>\n"
    done = subprocess.run(["gcc", "-E", "-dM", "-"], input=source, capture_output=True, text=True, check=False)
    found = re.findall(r"^#define __NR_(\w+) (\d+)$", done.stdout, re.MULTILINE)
    if not found:
        pytest.skip(f"no headers of the kernel: {done.stderr.strip()[:100]}")
    return {name: int(number) for name, number in found if name not in ("syscalls", "arch_specific_syscall")}


def test_closed_calls_and_those_of_a_kernel_to_come_are_refused(house: House) -> None:
    closed = [name for name in (*OPENABLE, *NEVER) if number(name) >= 0]
    tries = {f"call:{number(name)} -1 -1 -1 -1 -1 -1": name for name in closed}
    found = house.attempts([*tries, f"call:{UNKNOWN}", "call:435", "call:437 -1 -1 -1 -1", "call:470"])
    assert {tries[one]: answer for one, answer in found.items() if one in tries and answer != "EPERM"} == {}
    assert {answer for one, answer in found.items() if one not in tries} == {"ENOSYS"}


def test_of_netlink_only_routes_can_be_asked(house: House) -> None:
    assert house.attempts(["netlink:0", "netlink:4", "netlink:9", "netlink:15"]) == {
        "netlink:0": "ok",
        "netlink:4": "EPROTONOSUPPORT",
        "netlink:9": "EPROTONOSUPPORT",
        "netlink:15": "EPROTONOSUPPORT",
    }


def test_a_provider_can_open_one_of_them(house: House) -> None:
    tries = [f"call:{number(name)} -1 -1 -1 -1 -1 -1" for name in ("userfaultfd", "perf_event_open")]
    found = house.attempts(tries, rules=house.rules(system_calls=("userfaultfd",)))
    assert found[tries[1]] == "EPERM"
    # Now the kernel itself looks at the arguments.
    assert found[tries[0]] == "EINVAL"


def test_no_file_gets_a_set_user_or_group_id_bit(house: House) -> None:
    own = house.path("session/unit/00/own")
    script = f"chmod 755 {own} && echo plain; chmod 4755 {own} || chmod g+s {own} || echo refused"
    house.put("session/unit/00/own")
    assert house.attempts([f"run:{script}"])[f"run:{script}"] == "plain\nrefused\n"
    created = "import os; os.umask(0); os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755)"
    assert "Operation not permitted" in str(house.attempts([f"run:python3 -c {created!r}"]))
    assert not os.path.exists(house.path("session/unit/00/new"))


def test_programs_that_people_use_work_behind_the_filter(house: House) -> None:
    programs = {name: text for name, text in PROGRAMS.items() if shutil.which(name)}
    if house.tier == "A":
        programs |= {name: text for name, text in ONLY_IN_A.items() if shutil.which(name)}
    script = "export HOME=$PWD TMPDIR=$PWD\n" + "\n".join(
        f"( {text} ) > {name}.out 2>&1 || echo failed: {name}" for name, text in programs.items()
    )
    with house.pane("sh", "-c", script, rules=_with_tools(house)) as one:
        one.wait()
        failed = re.findall(r"failed: (\w+)", one.output.decode())
    assert {name: house.get(f"session/unit/00/{name}.out") for name in failed} == {}
    assert house.get("session/unit/00/gcc.out") == "7\n"


def _with_tools(house: House) -> Rules:
    rules = house.rules()
    found = [os.path.dirname(os.path.realpath(shutil.which(name) or "/bin/sh")) for name in PROGRAMS]
    homes = [os.path.expanduser(path) for path in ("~/.cargo", "~/.rustup", "~/.pyenv")]
    tools = [path for path in (*found, *homes, "/sys", "/etc") if os.path.exists(path)]
    named = (*rules.write, *rules.hide)
    return rules.but(read=tuple(dict.fromkeys((*rules.read, *(path for path in tools if path not in named)))))
