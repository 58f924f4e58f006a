"""Restore, archive and unarchive: shown beside what tmux and tar alone would take."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.site import Site

from benchmarks.arena import arena, until_started
from benchmarks.copying import make_templates
from benchmarks.floor import RawTmux
from benchmarks.measure import Effort, Group, Row, in_turns, timed
from benchmarks.starting import RUN
from mas.model.ids import SessionId
from mas.service.local import LocalMas
from mas.settings import ServerMode


def measure(effort: Effort) -> Group:
    with arena() as site:
        raw = RawTmux(site, site.user_socket)
        os.makedirs(os.path.dirname(raw.socket), mode=0o700)
        raw.keep()
        mas = site.local(ServerMode.AUTO)
        session = SessionId(mas.start(RUN).session_id)
        mas.stop(session)
        restore, floor = in_turns(
            effort.repeats(7), lambda: _restore(site, mas, session), lambda: raw.time_opening("floor")
        )
        rows = [Row("restore 13 agents", restore, "one tmux invocation", floor)]
        if shutil.which("zstd"):
            make_templates(site.session(session, "unit", "00", "work"))
            rows += _archiving(effort, site, mas, session)
    notes = () if len(rows) > 1 else ("Archives are left out: there is no zstd on this machine.",)
    return Group("Restore and archive (for information)", tuple(rows), notes)


def _restore(site: Site, mas: LocalMas, session: SessionId) -> float:
    for agent in mas.show(session).agents:
        log = site.session(session, "logs", f"agent-{agent.id}.events.jsonl")
        if os.path.exists(log):
            os.unlink(log)
    took = timed(lambda: mas.restore(session))
    until_started(site, mas.show(session))
    mas.stop(session)
    return took


def _archiving(effort: Effort, site: Site, mas: LocalMas, session: SessionId) -> list[Row]:
    packed = os.path.join(site.directory, "floor.tar.zst")
    unpacked = os.path.join(site.directory, "unpacked")

    def shell(script: str) -> float:
        script = f"set -e; {script}; sync -f {site.directory}"
        return timed(lambda: subprocess.run(["sh", "-c", script], cwd=site.session(session), check=True))

    def unpack() -> float:
        os.mkdir(unpacked)
        took = shell(f"zstd -dcq {packed} | tar -xf - -C {unpacked}")
        shutil.rmtree(unpacked)
        return took

    archive, unarchive, pack_floor, unpack_floor = in_turns(
        effort.repeats(3),
        lambda: timed(lambda: mas.archive(session)),
        lambda: timed(lambda: mas.unarchive(session)),
        lambda: shell(f"tar -cf - . | zstd -3 -T1 -fq -o {packed}; zstd -dcq {packed} | tar -tf - > /dev/null"),
        unpack,
    )
    return [
        Row("archive 65 MB: pack, read back, remove", archive, "tar | zstd, read back", pack_floor),
        Row("unarchive 65 MB", unarchive, "zstd | tar", unpack_floor),
    ]
