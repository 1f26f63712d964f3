import os
from io import StringIO

from pyinfra import host, inventory
from pyinfra.operations import files, python, server

COMP, BASE = os.environ["COMP"], os.environ["BASE"]
ENDPOINTS = inventory.__dict__.setdefault("endpoints", {})  # shared by all hosts of this run


def start():
    lines = [f"version={host.data.version}"] + [f"{need} {ENDPOINTS[need]}" for need in host.data.needs]
    files.put(src=StringIO("\n".join(lines) + "\n"), dest=f"{BASE}/hosts/{host.data.id}/config")
    ENDPOINTS[host.data.id] = server.shell(commands=[f"{COMP} start {host.data.id}"]).stdout.strip()


for tier in host.loop((3, 2, 1)):  # a plain loop would reorder the tiers
    if host.data.tier == tier and host.data.stop:
        server.shell(name=f"stop tier {tier}", commands=[f"{COMP} stop {host.data.id}"])
for tier in host.loop((1, 2, 3)):
    if host.data.tier == tier:
        python.call(name=f"start tier {tier}", function=start)
