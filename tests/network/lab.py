"""Runs in a network and mount namespace of its own, which stands for the user's machine, and makes a second one.

The second stands for the internet: a web server and an echo server at a public address and at a private one. Then a
process inside a session's network tries what the arguments say, and this prints how each went, as JSON.
Started by `tests/network/test_egress.py`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mas.model.launch import NetworkPlan
from mas.runtime.network.applying import apply_rules
from mas.runtime.network.hold import Network
from mas.runtime.network.names import NO_NAME, OK, answer, parse_question
from mas.runtime.sandbox.system import die_with_parent, libc

OWN, PUBLIC, PRIVATE = "93.184.215.1", "93.184.215.14", "10.9.9.9"
NEWER = "2606:4700::14"
HOSTS = f"""\
127.0.0.1 localhost
::1 localhost
{PUBLIC} web.example.com other.example.com db.example.com
{PRIVATE} private.example.com git.corp
127.0.0.1 loopback.example.com
::1 loopback6.example.com
::ffff:127.0.0.1 mapped.example.com
64:ff9b::7f00:1 translated.example.com
169.254.169.254 metadata.example.com
{OWN} own.example.com
0.0.0.0 zero.example.com
100.64.0.1 carrier.example.com
127.0.0.1 mixed.example.com
{PUBLIC} mixed.example.com
{NEWER} newer.example.com
"""
_PORTS = (22, 80, 443, 5432)
# A proxy of the user's machine, which knows more names than the machine does.
OUTER_PROXY = 8888
SIGNS_IN = "Basic YW5uOnMzY3JldA=="
BEYOND = {"beyond.example.com": PUBLIC, "beyond.corp": PRIVATE, "gone.example.com": ""}
_NEWNS, _NEWNET = 0x20000, 0x40000000


def unshare(kind: int) -> None:
    libc("unshare", kind)


def serve(port: int, newer: bool) -> None:
    """Answer requests with who was meant, and everything else with itself, until the other side has ended."""
    family = socket.AF_INET6 if newer else socket.AF_INET
    listener = socket.create_server(("", port), family=family, backlog=64, dualstack_ipv6=newer)
    while True:
        one, _ = listener.accept()
        threading.Thread(target=_talk, args=(one, port), daemon=True).start()


def _talk(one: socket.socket, port: int) -> None:
    with one:
        data = one.recv(1 << 16)
        if data.startswith(b"GET "):
            where = one.getsockname()[0].removeprefix("::ffff:")
            one.sendall(f"HTTP/1.0 200 OK\r\n\r\n{where} {port} ".encode() + data)
            return
        while data:
            one.sendall(data)
            data = one.recv(1 << 16)
        one.sendall(b" and goodbye")


def serve_proxy(asked: list[str]) -> None:
    """A proxy that tunnels for who signs in, and remembers what it was asked for."""
    listener = socket.create_server(("127.0.0.1", OUTER_PROXY), backlog=64)

    def tunnel(one: socket.socket) -> None:
        with one:
            head = b""
            while b"\r\n\r\n" not in head:
                head += one.recv(1 << 12)
            place = head.split()[1].decode()
            asked.append(place)
            host, _, port = place.rpartition(":")
            host = BEYOND.get(host, host)
            if SIGNS_IN not in head.decode():
                one.sendall(b"HTTP/1.1 407 Who are you\r\n\r\n")
            elif not host:
                one.sendall(b"HTTP/1.1 503 No such host\r\nContent-Length: 0\r\n\r\n")
            else:
                with socket.create_connection((host, int(port)), 60) as there:
                    one.sendall(b"HTTP/1.0 200 OK\r\nVia: lab\r\n\r\n")
                    there.sendall(one.recv(1 << 16))
                    while data := there.recv(1 << 16):
                        one.sendall(data)

    def serve() -> None:
        while True:
            threading.Thread(target=tunnel, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def serve_names(known: dict[str, str], delay: float = 0) -> None:
    """A name server of the user's machine, which may be slow."""
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.bind(("127.0.0.1", 53))

    def serve() -> None:
        while True:
            packet, peer = asked.recvfrom(1 << 12)
            question = parse_question(packet)
            time.sleep(delay)
            address = known.get(question.name, "")
            asked.sendto(answer(question, OK if address else NO_NAME, address), peer)

    threading.Thread(target=serve, daemon=True).start()


def echo_packets() -> None:
    """Answer packets of UDP with themselves."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("", 9999))
    while True:
        packet, peer = one.recvfrom(1 << 12)
        one.sendto(packet, peer)


def servers(ports: tuple[int, ...], newer: bool = False) -> None:
    for port in ports:
        threading.Thread(target=serve, args=(port, newer), daemon=True).start()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def serve_tls(place: str) -> None:
    """Show the files of `place`/www by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{place}/server.pem", f"{place}/key.pem")
    handler = partial(SimpleHTTPRequestHandler, directory=f"{place}/www")
    server = ThreadingHTTPServer(("", 443), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def internet(tls: str) -> int:
    """A process in another namespace, at the other end of a cable."""
    ready, told = os.pipe()
    go, start = os.pipe()
    child = os.fork()
    if child == 0:
        die_with_parent()
        unshare(_NEWNET)
        os.write(told, b"+")
        os.read(go, 1)
        ip("link", "set", "lo", "up")
        ip("addr", "add", f"{PUBLIC}/24", "dev", "far")
        ip("addr", "add", f"{PRIVATE}/32", "dev", "far")
        ip("addr", "add", f"{NEWER}/64", "dev", "far", "nodad")
        ip("link", "set", "far", "up")
        threading.Thread(target=echo_packets, daemon=True).start()
        servers(tuple(port for port in _PORTS if port != 443 or not tls), newer=True)
        if tls:
            # What it logs is nobody's business.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            serve_tls(tls)
        os.write(told, b"+")
        signal.pause()
    os.read(ready, 1)
    ip("link", "set", "lo", "up")
    ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(child))
    ip("addr", "add", f"{OWN}/24", "dev", "near")
    ip("addr", "add", "2606:4700::1/64", "dev", "near", "nodad")
    ip("link", "set", "near", "up")
    ip("route", "add", f"{PRIVATE}/32", "dev", "near")
    os.write(start, b"+")
    os.read(ready, 1)
    return child


def fetch(host: str, port: int) -> str:
    """The last line of what a web server there says."""
    with socket.create_connection((host, port), 60) as one:
        one.sendall(b"GET /x HTTP/1.0\r\nHost: " + host.encode() + b"\r\n\r\n")
        said = b""
        while data := one.recv(1 << 16):
            said += data
    return said.decode().partition("\r\n\r\n")[2].partition(" GET")[0]


def echo(host: str, size: int) -> str:
    """Send much, end this side, and count what comes back."""
    with socket.create_connection((host, 22), 60) as one:
        back = bytearray()

        def read() -> None:
            while data := one.recv(1 << 16):
                back.extend(data)

        reader = threading.Thread(target=read)
        reader.start()
        one.sendall(bytes(size))
        one.shutdown(socket.SHUT_WR)
        reader.join(60)
    return f"{len(back)} {back[-12:].decode()}"


def proxy(first: str) -> str:
    """What the proxy inside says to a first line."""
    with socket.create_connection(("127.0.0.1", 3128), 60) as one:
        one.sendall(f"{first}\r\nHost: ignored\r\nProxy-Connection: keep-alive\r\n\r\n".encode())
        said = one.recv(1 << 12)
        if b" 200 " in said.partition(b"\r\n")[0] and first.startswith("CONNECT"):
            one.sendall(b"GET /x HTTP/1.0\r\n\r\n")
            said = b""
        while data := one.recv(1 << 16):
            said += data
    return said.decode("utf-8", "replace")


def garbage(size: int) -> str:
    """What the proxy inside says to what is no request."""
    with socket.create_connection(("127.0.0.1", 3128), 60) as one:
        one.sendall(b"x" * size + b"\r\n\r\n")
        return one.recv(1 << 12).decode().partition("\r\n")[0]


def packet(host: str) -> str:
    """What comes back of a packet of UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(5)
        one.connect((host, 9999))
        one.send(b"a packet")
        return one.recv(64).decode()


def resolve(name: str) -> str:
    return str(socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])


def run(*argv: str) -> str:
    """A program that knows nothing of MAS, in a directory of its own."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, cwd=os.environ["LAB"])
    return f"{done.returncode} {done.stdout}{done.stderr}"


def apply(change: dict[str, Any]) -> str:
    """Other rules while agents are running, as MAS would write them."""
    path = f"{os.environ['LAB']}/rules.json"
    with open(path, encoding="utf-8") as file:
        rules = json.load(file)
    with open(f"{path}.half", "w", encoding="utf-8") as file:
        json.dump(rules | change, file)
    os.rename(f"{path}.half", path)
    return apply_rules(os.environ["LAB"]) or "applied"


def kill_meanwhile(host: str) -> str:
    """What a connection brings when the egress process is killed, and what the next one does."""
    with socket.create_connection((host, 22), 60) as one:
        one.sendall(b"first")
        said = [one.recv(64).decode()]
        _kill_egress()
        try:
            said.append(one.recv(64).decode() or "end")
        except ConnectionResetError:
            said.append("end")
    return " ".join([*said, fetch(host, 80)])


def _kill_egress() -> None:
    os.kill(int(os.readlink(f"{os.environ['LAB']}/space").split()[0]), signal.SIGKILL)


def rebind(name: str, address: str) -> str:
    """What is reached at a name's address inside, once the name leads elsewhere; and when it is looked up again."""
    kept = resolve(name)
    with open(f"{os.environ['LAB']}/hosts", "r+", encoding="ascii") as file:
        lines = [line for line in file.read().splitlines() if not line.endswith(f" {name}")]
        file.seek(0)
        file.truncate()
        file.write("\n".join([*lines, f"{address} {name}", ""]))
    first = fetch(kept, 80)
    # It forgets what it has looked up, and not which name an address stands for.
    _kill_egress()
    try:
        return f"{first}; {fetch(kept, 80)}"
    except ConnectionResetError:
        return f"{first}; reset"


def own_kinds(name: str) -> str:
    """The address of a name for a program that wants addresses of the machine's own kinds only."""
    wanted = (name, 80, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
    return str(socket.getaddrinfo(*wanted)[0][4][0])


def keep(network: Network) -> None:
    """Do what launchers do: start the egress process again if it was killed."""
    while network.fd >= 0:
        if select.select([network.fd], [], [], 0.1)[0]:
            network.hear(time.monotonic())


WORDS: dict[str, Any] = {
    word.__name__: word
    for word in (fetch, echo, resolve, proxy, garbage, packet, kill_meanwhile, rebind, own_kinds, run, apply)
}
_INSIDE = ("run", "apply", "kill_meanwhile", "rebind")


def attempt(asked: list[Any]) -> str:
    try:
        return str(WORDS[asked[0]](*asked[1:]))
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def inside(network: Network, directory: str, tries: list[list[Any]]) -> list[str]:
    """What a process in the session's network says to each."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        network.space.join()
        unshare(_NEWNS)
        with open(f"{directory}/resolv.conf", "w", encoding="ascii") as file:
            file.write("nameserver 127.0.0.53\nsearch .\n")
        with open(f"{directory}/inner-hosts", "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n")
        for name, over in (("resolv.conf", os.path.realpath("/etc/resolv.conf")), ("inner-hosts", "/etc/hosts")):
            subprocess.run(["mount", "--bind", f"{directory}/{name}", over], check=True)
        with open(write, "w", encoding="utf-8") as file:
            json.dump([attempt(one) for one in tries], file)
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as file:
        said: list[str] = json.load(file)
    os.waitpid(child, 0)
    return said


def prepare_for_pasta(directory: str) -> None:
    """What pasta needs of a machine: a way out, name servers, and a device that every user can open."""
    ip("route", "add", "default", "via", PUBLIC)
    os.chmod(directory, 0o755)
    tun = f"{directory}/tun"
    os.mknod(tun, stat.S_IFCHR | 0o666, os.makedev(10, 200))
    os.chmod(tun, 0o666)
    subprocess.run(["mount", "--bind", tun, "/dev/net/tun"], check=True)
    serve_names({"web.example.com": PUBLIC, "private.example.com": PRIVATE, "git.corp": PRIVATE})
    ask_at(directory, "127.0.0.1")


def ask_at(directory: str, name_server: str) -> None:
    """Have the machine ask this name server, and not for long."""
    with open(f"{directory}/outer-resolv.conf", "w", encoding="ascii") as file:
        file.write(f"nameserver {name_server}\noptions timeout:1 attempts:1\n")
    over = os.path.realpath("/etc/resolv.conf")
    subprocess.run(["mount", "--bind", f"{directory}/outer-resolv.conf", over], check=True)


def main(rules: dict[str, Any], tries: list[list[Any]]) -> None:
    far = internet(rules.pop("tls", ""))
    # A service of the user's machine.
    servers((80, 5432))
    proxied: list[str] = []
    serve_proxy(proxied)
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LAB"] = directory
        with open(f"{directory}/hosts", "w", encoding="ascii") as file:
            file.write(HOSTS + rules.pop("hosts", ""))
        subprocess.run(["mount", "--bind", f"{directory}/hosts", "/etc/hosts"], check=True)
        listen, pasta = rules.pop("listen", []), rules.pop("pasta", "")
        if name_server := rules.pop("name_server", None):
            serve_names({"slow.example.com": PUBLIC}, name_server)
            ask_at(directory, "127.0.0.1")
        planned = rules.pop("planned", listen)
        if pasta:
            prepare_for_pasta(directory)
        given = {"mode": "names", "allow": [], "private": [], "fixed": {}, "door": "", "listen": listen, **rules}
        with open(f"{directory}/rules.json", "w", encoding="utf-8") as file:
            json.dump({**given, "log": f"{directory}/log"}, file)
        # Controls: all of it is there for the machine.
        outside = [attempt(one) for one in tries if one[0] not in _INSIDE]
        network = Network(NetworkPlan(directory=directory, listen=tuple(map(tuple, planned)), pasta=pasta), "21")
        network.tell(os.getpid())
        threading.Thread(target=keep, args=(network,), daemon=True).start()
        said = inside(network, directory, tries)
        with open(f"{directory}/log", "a+", encoding="utf-8") as file:
            file.seek(0)
            log = [json.loads(line) for line in file]
        with open(f"{directory}/errors.log", encoding="utf-8") as file:
            errors = file.read()
        network.close()
        deadline = time.monotonic() + 60
        while os.path.exists(f"{directory}/egress.sock") and time.monotonic() < deadline:
            time.sleep(0.01)
    os.kill(far, signal.SIGKILL)
    os.waitpid(far, 0)
    json.dump({"inside": said, "outside": outside, "log": log, "errors": errors, "proxied": proxied}, sys.stdout)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
