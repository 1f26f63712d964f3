"""Counts visits in Redis and writes them down in PostgreSQL, with nothing but Python's own library and psql."""

import http.server
import json
import signal
import socket
import subprocess
import sys


def settings():
    with open("app.json") as file:
        return json.load(file)


def redis(*words):
    """One question in the protocol of Redis, and its answer: a number or a text."""
    asked = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(it), it.encode()) for it in words)
    with socket.create_connection(tuple(now["redis"]), timeout=5) as connection:
        connection.sendall(asked)
        return answer(connection.makefile("rb"))


def answer(stream):
    line = stream.readline().strip()
    sort, rest = line[:1], line[1:].decode()
    if sort == b":":
        return int(rest)
    if sort == b"$":
        return stream.read(int(rest) + 2)[:-2].decode()
    if sort == b"*":
        return [answer(stream) for _ in range(int(rest))]
    if sort == b"-":
        raise RuntimeError(rest)
    return rest


def postgres(statement):
    host, port = now["postgres"]
    command = ["psql", "-qtAX", "-h", host, "-p", str(port), "-U", "shop", "-d", "postgres", "-c", statement]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            return self.reply(200, dict(well=True))
        try:
            said = dict(
                front=self.headers.get("X-Front"),
                visits=redis("INCR", "visits"),
                memory=redis("CONFIG", "GET", "maxmemory")[1],
                redis="%s:%d" % tuple(now["redis"]),
                written=int(postgres("INSERT INTO visit DEFAULT VALUES RETURNING id")),
            )
        except Exception as error:
            return self.reply(503, dict(error=str(error)))
        self.reply(200, said)

    def reply(self, code, document):
        text = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def read_anew(*_):
    now.update(settings())
    print("told of", now["redis"], now["postgres"], flush=True)


now = settings()
if sys.argv[1] == "prepare":
    postgres("CREATE TABLE IF NOT EXISTS visit (id serial)")
else:
    signal.signal(signal.SIGHUP, read_anew)
    print("asks", now["redis"], now["postgres"], flush=True)
    http.server.ThreadingHTTPServer(tuple(now["listen"]), Page).serve_forever()
