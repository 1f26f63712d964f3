"""Drives a whole deployment through the manager's API with nothing but Python's standard library.

Takes the access file, reads the OpenAPI description, and uses only routes that it lists.
"""

import http.client
import json
import ssl
import sys
import urllib.parse

access = json.load(open(sys.argv[1]))
url = urllib.parse.urlparse(access["url"])
trust = ssl.create_default_context(cadata=access["certificate"])


def call(method, path, body=None, expect=(200, 202)):
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=trust, timeout=60)
    headers = {"Authorization": "Bearer " + access["token"]}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status in expect, (method, path, answer.status, text)
    return json.loads(text) if text else None


def until_done(submitted):
    """Reads the stream of events until the change is done."""
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=trust, timeout=60)
    headers = {"Authorization": "Bearer " + access["token"]}
    connection.request("GET", "/v1/events?after=%d" % submitted["events_after"], headers=headers)
    stream = connection.getresponse()
    for line in stream:
        if line.startswith(b"data:"):
            event = json.loads(line[5:])
            if event.get("what") == "change-done" and event.get("change") == submitted["change"]:
                return
    raise AssertionError("the stream ended before the change")


def started():
    status = call("GET", "/v1/status")
    return sorted(it["name"] for it in status["components"] if it["state"] == "started")


described = call("GET", "/v1/openapi.json")
for path in ["/v1/apply", "/v1/scale", "/v1/rollback", "/v1/remove", "/v1/check", "/v1/events", "/v1/status"]:
    assert path in described["paths"], path
example = described["components"]["schemas"]["ScaleRequest"]["properties"]["application"]
assert example["example"] == "shop" or example["examples"] == ["shop"], example

# Every route that takes or gives a document has an example; the example of a request works as it stands.
body = described["paths"]["/v1/apply"]["post"]["requestBody"]["content"]["application/json"]
plan = call("POST", "/v1/apply?dry-run=true", body["example"])
assert plan["forecast"]["starts"] == 3, plan

text = """holdfast: 1
application: shop
types:
  App: { operations: { start: { process: "exec sleep 100000" } } }
vms: { v: { cloud: local } }
components: { app: { type: App, count: 2 } }
"""
files = {"main": "shop.yaml", "files": {"shop.yaml": text}}

# What is wrong is answered with its place, and changes nothing.
wrong = {"main": "shop.yaml", "files": {"shop.yaml": text.replace("type: App", "type: Apt")}}
problem = call("POST", "/v1/apply", {"application": wrong}, expect=(422,))
assert problem["places"][0]["line"] == 6, problem

plan = call("POST", "/v1/apply?dry-run=true", {"application": files})
assert plan["applications"][0]["version"] == 0 and plan["forecast"]["starts"] == 2, plan
assert call("GET", "/v1/applications") == []

submitted = call("POST", "/v1/apply", {"application": files, "how": {"versions": {"shop": 0}}})
until_done(submitted)
assert started() == ["shop/app[0]", "shop/app[1]"], started()

# Who looked at an older version is refused.
call("POST", "/v1/apply", {"application": files, "how": {"versions": {"shop": 0}}}, expect=(409,))

until_done(call("POST", "/v1/scale", {"counts": {"app": 4}}))
assert len(started()) == 4
until_done(call("POST", "/v1/rollback", {"application": "shop"}))
assert len(started()) == 2
versions = call("GET", "/v1/applications/shop")["versions"]
assert [it["intent"] for it in versions] == ["apply", "scale", "rollback"], versions
drift = call("POST", "/v1/check", {"names": ["shop"]})
assert drift["applications"] == {} and drift["examined"] == 2, drift
until_done(call("POST", "/v1/remove", {"application": "shop"}))
assert call("GET", "/v1/status")["vms"] == []
print("plain HTTP is enough")
