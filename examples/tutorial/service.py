# A small web service. It answers with its own name and the answers of its providers, which it reads from a file.
# It does one thing at a time: so once /reload is answered, no earlier request still uses an old provider.
import http.server
import sys
import urllib.request


def answer_of(address):
    with urllib.request.urlopen(address, timeout=5) as answer:
        return answer.read().decode()


class Service(http.server.BaseHTTPRequestHandler):
    providers = []

    def do_GET(self):
        if self.path == "/reload":
            Service.providers = open("providers").read().split()
        parts = [] if self.path in ("/reload", "/ready") else map(answer_of, self.providers)
        body = " <- ".join([name, *parts]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


name, address = sys.argv[1:]
if name == "reload":
    answer_of("http://" + address + "/reload")
else:
    Service.providers = open("providers").read().split()
    host, port = address.split(":")
    server = http.server.HTTPServer((host, int(port)), Service)
    print(name, "listens at http://" + address + "/", flush=True)
    server.serve_forever()
