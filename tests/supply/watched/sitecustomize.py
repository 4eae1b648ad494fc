"""Records every attempt of a Python process to reach another machine, in the file that an
environment variable names."""

import os
import sys

_EVENTS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
           "socket.gethostbyname", "socket.gethostbyaddr")  # fmt: skip
_HERE = ("127.", "::1", "localhost")


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _EVENTS:
        return
    address = arguments[1] if event.startswith(("socket.connect", "socket.send")) else arguments[0]
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(address, (str, bytes)) and event.startswith(("socket.connect", "socket.send")):
        return  # a socket of Unix
    if host is not None and not str(host).startswith(_HERE):
        with open(os.environ["RLOX_WATCHED"], "a") as file:  # noqa: PTH123
            file.write(f"{event} {address!r} by {sys.argv}\n")


if "RLOX_WATCHED" in os.environ:
    sys.addaudithook(_hear)
