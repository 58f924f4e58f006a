"""mas serve: Serve the workspace over HTTP, for the web page, scripts and agents. Agents keep running when it ends."""

from __future__ import annotations

import argparse

from mas.bootstrap import open_serving
from mas.cli.command import Arguments, opened
from mas.cli.entry import given_path
from mas.cli.render import Render
from mas.model.errors import BadInput, MasError, ServerRunning
from mas.model.server import ServerInfo

SUMMARY = "serve the workspace over HTTP"
WHERE = "here"
EXAMPLES = """
mas serve
mas serve --detach
mas serve --stop
mas serve --host 10.0.0.5 --tls-cert cert.pem --tls-key key.pem
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument("--port", type=int, metavar="N", help="port (default: the first free one from 7717; 0: any)")
    parser.add_argument("--tls-cert", type=given_path, metavar="FILE", help="serve HTTPS with this certificate")
    parser.add_argument("--tls-key", type=given_path, metavar="FILE", help="the private key of the certificate")
    parser.add_argument(
        "--behind-proxy", action="store_true", help="trust the headers of a proxy on this machine that does HTTPS"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name of this server; may be repeated"
    )
    parser.add_argument(
        "--until-idle", type=float, metavar="SECONDS", help="exit this long after the last session and client ended"
    )
    parser.add_argument("--if-none", action="store_true", help="do nothing if a server is already running")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--detach", action="store_true", help="run in the background, with logs/api.pid and logs/api.log")
    what.add_argument("--stop", action="store_true", help="stop the running server")
    what.add_argument("--install-unit", action="store_true", help="install a systemd unit for this user")


def run(args: Arguments, out: Render) -> int:
    if args.port is not None and not 0 <= args.port < 1 << 16:
        raise BadInput(f"Not a port: {args.port}")
    if args.stop:
        return _stop(args, out)
    if args.install_unit:
        return _install(args, out)
    from mas.http.server import Options, serve
    from mas.mcp.web import PATH, WebDoor

    options = Options(
        args.host, args.port, args.tls_cert, args.tls_key, args.behind_proxy, tuple(args.allow_host), args.until_idle
    )
    options.check()
    serving = open_serving(args.workspace)
    if args.detach:
        there = serving.find() if args.if_none else None
        tell(there or serving.detach(_options(args)), out)
        return 0

    def ready(info: ServerInfo) -> None:
        tell(info, out)
        out.flush()

    try:
        ended_by_itself = serve(args.workspace, options, ready, {PATH: WebDoor})
    except (MasError, OSError) as error:
        if not args.if_none:
            raise
        if isinstance(error, ServerRunning):
            return 0
        serving.warn(f"The server did not start: {error}")
        raise
    if ended_by_itself and opened(args).list("active", 1).total:
        # Started while this one was ending, and so without one of its own.
        serving.summon()
    return 0


def tell(info: ServerInfo, out: Render) -> None:
    """Where the server is."""
    out.talk("To sign in a browser, open the address that `mas url` prints; programs use `mas token`")
    out.result(info, lambda: out.line(info.url))


def _stop(args: Arguments, out: Render) -> int:
    info = open_serving(args.workspace).stop()
    if info is None:
        out.talk("No server is running for this workspace")
    else:
        where = f"at {info.url}" if info.url else f"(process {info.pid}), whose address is unknown"
        out.talk(f"Stopped the server {where}; its agents keep running")
        out.result(info, lambda: None)
    return 0


def _install(args: Arguments, out: Render) -> int:
    serving = open_serving(args.workspace)
    path, command = serving.install_unit(_options(args))
    if serving.has_systemd():
        out.talk(f"Start it now and at every login: {command}")
    else:
        out.warn("Nothing will start this unit: systemd is not running for this user. Instead: mas serve --detach")
    out.result({"unit": path, "command": command}, lambda: out.line(path))
    return 0


def _options(args: Arguments) -> list[str]:
    """The same options for the server's own process."""
    from os.path import abspath

    words = ["--host", args.host]
    words += ["--until-idle", str(args.until_idle)] if args.until_idle is not None else []
    words += ["--port", str(args.port)] if args.port is not None else []
    for flag, path in (("--tls-cert", args.tls_cert), ("--tls-key", args.tls_key)):
        words += [flag, abspath(path)] if path else []
    words += ["--behind-proxy"] if args.behind_proxy else []
    for name in args.allow_host:
        words += ["--allow-host", name]
    return words
