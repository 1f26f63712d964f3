# One entry for each host that is touched, or whose endpoint is needed.
import json
import os

_plan = json.load(open(os.environ["PLAN"] + ".json"))
_components = _plan["components"]
_touched = {*_plan["start"], *_plan["stop"], *(need for it in _plan["start"] for need in _components[it]["needs"])}
_ssh = {
    "ssh_user": os.environ["USER"], "ssh_port": int(os.environ["PORT"]), "ssh_key": os.environ["BASE"] + "/ssh/key",
    "ssh_strict_host_key_checking": "off", "ssh_known_hosts_file": "/dev/null",
}
hosts = [
    (it["address"], {**it, **_ssh, "stop": it["id"] in _plan["stop"]})
    for it in _components.values() if it["id"] in _touched
]
