"""Holdfast as a tool: a resident manager and one agent for each host; what is timed is one request and its end."""
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import workload  # noqa: E402


class Holdfast:
    def __init__(self, base, programs, count):
        self.base, self.programs, self.processes = os.path.join(base, "holdfast"), programs, []
        shutil.rmtree(self.base, ignore_errors=True)
        os.makedirs(self.base)
        self.access = f"{self.base}/manager/access.json"
        self.change = f"{self.base}/change.json"
        self.present = {}
        manager = self.start("manager", "manager", "run", "--data", f"{self.base}/manager", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
        where = manager.split()[1]
        with open(self.access) as file:
            self.manager = json.load(file)
        self.trust = ssl.create_default_context(cadata=self.manager["certificate"])
        for host in range(count):
            token = self.post("/v1/join-tokens", {})["text"]
            self.start(f"agent-{host}", "agent", "run", "--data", f"{self.base}/agent-{host}", "--manager", where,
                       "--listen", f"{workload.address(host)}:0", "--name", f"host{host}", "--token", token)

    def start(self, name, *arguments):
        """Starts a program and returns the first line it prints; it is ready then."""
        log = open(f"{self.base}/{name}.log", "w")
        command = [os.path.join(self.programs, "holdfast"), *arguments]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes.append(process)
        return process.stdout.readline()

    def post(self, path, document):
        headers = {"Authorization": f"Bearer {self.manager['token']}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.manager["url"] + path, json.dumps(document).encode(), headers)
        with urllib.request.urlopen(request, context=self.trust, timeout=60) as answer:
            return json.load(answer)

    def prepare(self, plan, environment):
        """Writes the change; like an inventory, it is not timed."""
        components, edits = plan["components"], []
        new = [it for it in plan["start"] if it not in plan["stop"]]
        if plan["scenario"] == "replace":
            # Whoever depends on it is stopped and started by itself.
            edits.append({"remove-component": "t1c0"})
            new = ["t1c0"]
        elif plan["scenario"] == "scale":
            # Those that need other providers than before are made anew, as the rivals do.
            edits += [{"remove-component": it} for it in plan["stop"]]
            new = plan["start"]
        edits += [{"add-component": self.component(components[it], environment)} for it in new]
        edits += [{"bind": f"{it['id']}.below → {need}.service"} for it in components.values() for need in it["needs"]
                   if it["id"] in new or need in new]
        self.write({"strategy": "down-then-up", "edits": edits})
        self.present = components

    def component(self, it, environment):
        files, imports = ["version={{ parameters.version }}\n"], {}
        if it["needs"]:
            files.append("{% for it in imports.below %}{{ it.id }} {{ it.endpoint }}\n{% endfor %}")
            imports = {"below": {"export": "service", "strong": len(it["needs"])}}
        comp, name = environment["COMP"], it["id"]
        start = f"endpoint=$({comp} start {name}) && printf 'id={name}\\nendpoint=%s\\n' \"$endpoint\" >\"$HOLDFAST_VALUES\""
        return {
            "name": name, "vm": f"host{self.host(it)}", "imports": imports,
            "exports": {"service": {"values": ["id", "endpoint"]}},
            "recipe": {
                "version": 1, "parameters": {"version": it["version"]},
                "files": [{"path": f"{environment['BASE']}/hosts/{name}/config", "template": "".join(files), "mode": "0644"}],
                "operations": {"start": {"script": {"run": start}}, "stop": {"command": {"run": [comp, "stop", name]}}},
            },
        }

    @staticmethod
    def host(it):
        _, _, high, low = map(int, it["address"].split("."))
        return (high - 1) * 200 + low - 1

    def write(self, change):
        with open(self.change, "w") as file:
            json.dump(change, file)

    def command(self):
        return [os.path.join(self.programs, "ask"), self.access, self.change]

    def reset(self):
        """Takes every component away; agents stay."""
        if self.present:
            self.write({"edits": [{"remove-component": it} for it in self.present]})
            subprocess.run(self.command(), check=True, timeout=120, stdout=subprocess.DEVNULL)
            self.present = {}

    def close(self):
        """Ends all programs; components are not processes here, so none is left behind."""
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()
