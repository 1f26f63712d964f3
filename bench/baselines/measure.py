#!/usr/bin/env python3
"""Runs the workload with each tool, side by side, and says how long it took and whether it was done right.

For each number of hosts, length of starts and shape: deploy, replace and scale with one tool after the other, then all of it
again, so that whatever else the machine does hits all tools alike. Rows go to a CSV file, medians to the screen."""
import argparse
import csv
import getpass
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import workload
from machines import Machines, processor_s
from tools.holdfast import Holdfast

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["tool", "hosts", "starts", "shape", "scenario", "round", "wall_s", "critical_s", "asked_s", "cpu_s", "violations",
           "complaints", "code", "load"]
SCENARIOS = ["deploy", "replace", "scale"]
# They take so long that once is enough.
SLOW = {"ansible", "pyinfra"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: text.split(",")
    parser.add_argument("--scratch", default=os.path.join(tempfile.gettempdir(), "holdfast-baselines"), help="as given to setup")
    parser.add_argument("--programs", default="target/release", help="where holdfast and ask are")
    parser.add_argument("--tools", type=listed, default=["holdfast", "bash", "make", "pyinfra", "ansible"])
    parser.add_argument("--hosts", type=lambda text: [int(it) for it in text.split(",")], default=[3, 12, 48])
    parser.add_argument("--starts", type=listed, default=["0", "0.2", "varied"], help="seconds, or varied")
    parser.add_argument("--shapes", type=listed, default=["one", "all"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-rounds", type=int, default=1, help=f"for {' and '.join(sorted(SLOW))}")
    parser.add_argument("--port", type=int, default=22022)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run")
    parser.add_argument("--csv", default="baselines.csv")
    return parser.parse_args()


def main():
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    base, count = os.path.abspath(given.scratch), 2 * max(given.hosts)
    os.makedirs(f"{base}/bin", exist_ok=True)
    shutil.copy(f"{HERE}/comp", f"{base}/bin/comp")
    machines = Machines(base, count, given.port)
    holdfast = None
    try:
        if "holdfast" in given.tools:
            holdfast = Holdfast(base, os.path.abspath(given.programs), count)
        with open(given.csv, "w", newline="") as file:
            rows = csv.DictWriter(file, COLUMNS)
            rows.writeheader()
            bench = Bench(given, base, machines, holdfast)
            seen = []
            for hosts in given.hosts:
                for starts in given.starts:
                    for shape in given.shapes:
                        for number in range(given.rounds):
                            for tool in given.tools:
                                if number < given.slow_rounds or tool not in SLOW:
                                    for row in bench.run(tool, hosts, starts, shape, number):
                                        rows.writerow(row)
                                        file.flush()
                                        seen.append(row)
    finally:
        if holdfast:
            holdfast.close()
        machines.close()
    show(seen, given.tools)


class Bench:
    def __init__(self, given, base, machines, holdfast):
        self.given, self.base, self.machines, self.holdfast = given, base, machines, holdfast
        self.log = open(f"{base}/log", "w")
        self.environment = dict(
            os.environ, BASE=base, COMP=f"{base}/bin/comp", PLAN=f"{base}/plan", MEMORY=f"{base}/memory", SSH=machines.client,
            PORT=str(given.port), USER=getpass.getuser())

    def run(self, tool, hosts, starts, shape, number):
        """One tool through all scenarios, from nothing."""
        if tool == "holdfast":
            self.holdfast.reset()
        else:
            # Those of the hosts that scale adds it opens itself.
            self.machines.disconnect()
            self.machines.connect([workload.address(host) for host in range(hosts)])
        workload.clear(self.base, workload.application(2 * hosts, shape), starts)
        shutil.rmtree(self.environment["MEMORY"], ignore_errors=True)
        os.makedirs(self.environment["MEMORY"])
        world = workload.World()
        for scenario in SCENARIOS:
            plan = workload.plan(scenario, hosts, shape)
            if scenario == "scale":
                plan["components"]["t1c0"]["version"] = "2"  # of the replacement before
            workload.write(plan, self.environment["PLAN"], scenario, hosts, shape)
            open(f"{self.base}/journal", "w").close()
            command = self.command(tool, {**plan, "scenario": scenario})
            print(f"##### {tool} {hosts} {starts} {shape} {scenario} {number}", file=self.log, flush=True)
            before, began = processor_s(), time.time()
            try:
                ended = subprocess.run(command, env=self.environment, timeout=self.given.limit, stdin=subprocess.DEVNULL, start_new_session=True,
                                       stdout=subprocess.PIPE, stderr=self.log)
                code, output = ended.returncode, ended.stdout.decode()
            except subprocess.TimeoutExpired:
                code, output = "late", ""
            wall, used = time.time() - began, processor_s() - before
            print(output, file=self.log, flush=True)
            violations = world.follow(f"{self.base}/journal", plan["components"])
            complaints = world.complaints(plan["components"])
            print("\n".join(complaints), file=self.log, flush=True)
            yield {
                "tool": tool, "hosts": hosts, "starts": starts, "shape": shape, "scenario": scenario, "round": number,
                "wall_s": round(wall, 4), "critical_s": round(workload.critical_path(plan, starts), 3),
                "asked_s": output.split()[1] if tool == "holdfast" and output else "",
                "cpu_s": round(used, 3),
                "violations": violations, "complaints": len(complaints), "code": code, "load": round(os.getloadavg()[0], 1),
            }

    def command(self, tool, plan):
        """What is timed. What a person would have written once, such as an inventory, is written here."""
        if tool == "holdfast":
            self.holdfast.prepare(plan, self.environment)
            return self.holdfast.command()
        if tool == "pyinfra":
            place = f"{HERE}/tools/pyinfra"
            return [f"{self.base}/venv-pyinfra/bin/pyinfra", "-y", "--parallel", "400", f"{place}/inventory.py", f"{place}/deploy.py"]
        if tool == "ansible":
            return self.ansible(plan)
        if tool == "make":
            subprocess.run([f"{HERE}/tools/make.sh"], env=self.environment, check=True)
            return ["make", "-s", "-j", "400", "-C", self.environment["MEMORY"]]
        return [f"{HERE}/tools/{tool}.sh"]

    def ansible(self, plan):
        components = plan["components"]
        touched = {*plan["start"], *plan["stop"], *(need for it in plan["start"] for need in components[it]["needs"])}
        inventory, limit = f"{self.environment['MEMORY']}/inventory", f"{self.environment['MEMORY']}/limit"
        with open(inventory, "w") as file:
            for tier in (1, 2, 3):
                file.write(f"[tier{tier}]\n")
                for it in components.values():
                    if it["tier"] == tier:
                        file.write(f"{it['id']} ansible_host={it['address']} version={it['version']} needs='{json.dumps(it['needs'])}'\n")
            file.write("[stop]\n" + "".join(f"{it}\n" for it in plan["stop"]))
        with open(limit, "w") as file:
            file.write("".join(f"{it}\n" for it in sorted(touched)))
        self.environment.update(
            ANSIBLE_CONFIG=f"{HERE}/tools/ansible/ansible.cfg", ANSIBLE_SSH_ARGS=f"-F {self.machines.client}",
            ANSIBLE_HOME=f"{self.base}/ansible", ANSIBLE_NOCOLOR="1")
        variables = {"base": self.base, "comp": self.environment["COMP"], "ansible_port": self.given.port,
                     "ansible_python_interpreter": sys.executable}
        return [f"{self.base}/venv-ansible/bin/ansible-playbook", "-i", inventory, "--limit", f"@{limit}",
                "-e", json.dumps(variables), f"{HERE}/tools/ansible/site.yml"]


def show(rows, tools):
    """Medians of wall and of processor time, as a table; what went wrong is counted."""
    groups = {}
    for row in rows:
        groups.setdefault((row["shape"], row["starts"], row["scenario"], row["hosts"]), {}).setdefault(row["tool"], []).append(row)
    print("| shape | starts | scenario | hosts | critical path | " + " | ".join(tools) + " |")
    print("|---|---|---|---:|---:|" + "---:|" * len(tools))
    for key, by_tool in groups.items():
        cells = []
        for tool in tools:
            walls = [row["wall_s"] for row in by_tool.get(tool, [])]
            wrong = sum(row["violations"] + row["complaints"] + (row["code"] != 0) for row in by_tool.get(tool, []))
            used = [row["cpu_s"] for row in by_tool.get(tool, [])]
            cell = f"{statistics.median(walls):.2f} / {statistics.median(used):.2f}" if walls else "–"
            cells.append(cell + (f" ({wrong} wrong)" if wrong else ""))
        critical = next(iter(by_tool.values()))[0]["critical_s"]
        print("| " + " | ".join([*map(str, key), f"{critical:.2f}", *cells]) + " |")
    load = [row["load"] for row in rows]
    print(f"\nload average {min(load)} to {max(load)}; wall / processor time in seconds, medians")


if __name__ == "__main__":
    main()
