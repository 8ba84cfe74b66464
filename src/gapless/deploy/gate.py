"""A gate before a page on this computer: only who has the token, which the address carries once, sees it."""

import asyncio
import hmac
import secrets
import threading
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

COOKIE = "gapless"
LARGEST_HEAD, PATIENCE = 16384, 5.0
"""Bytes of the head of a request, and s in which it comes."""
DENIED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Gate:
    """Listens at host:port and passes on to a port of this computer the connections that begin with the token."""

    def __init__(self, host: str, port: int, inside: int):
        self.token, self._inside = secrets.token_urlsafe(24), inside
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._meet, host, port, limit=LARGEST_HEAD)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(5.0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            given, known = _tokens(head)
            if not (self._is(given) or self._is(known)):
                writer.write(DENIED)
            elif self._is(given):  # once in the address, from then on in a cookie
                cookie = f"Set-Cookie: {COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                answer = f"HTTP/1.1 303 See Other\r\nLocation: /\r\n{cookie}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                writer.write(answer.encode())
            else:
                there, back = await asyncio.open_connection("127.0.0.1", self._inside)
                back.write(head)
                await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    def _is(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())


def _tokens(head: bytes) -> tuple[str, str]:
    """The token in the address of a request, and the one in its cookie; empty where there is none."""
    lines = head.decode("latin-1").split("\r\n")
    words, cookie = lines[0].split(" "), SimpleCookie()
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "cookie":
            try:
                cookie.load(value)
            except CookieError:
                continue
    given = parse_qs(urlsplit(words[1]).query).get("token", [""])[0] if len(words) > 1 else ""
    return given, cookie[COOKIE].value if COOKIE in cookie else ""


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
