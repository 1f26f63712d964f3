#!/usr/bin/env python3
"""Gives the problems of `planner --write DIRECTORY` and the known ones to other solvers.

    python3 bench/planner_rivals.py DIRECTORY [--limit SECONDS] [--ours PROGRAM] [NAME ...]
    python3 bench/planner_rivals.py DIRECTORY --random NUMBER [--seed FIRST] [--limit SECONDS] --ours PROGRAM

Two models: the published one (an integer for each node and type) and the one the planner uses (an integer for each
multiset of components that fits on a node of a class). Three solvers: CP-SAT and SCIP from the PyPI package `ortools`,
and Gecode by way of MiniZinc, if the program `minizinc` is there. Only conjunctions of counts and "alone on its node" are
translated; that covers the problems measured here.

With `--random`, problems of the shape of the published scaling problems are made (types that the specification leaves
open, a free node and a paid one with room for a thousand, objects with a resource of their own, several providers of one
interface) and given to the planner and to CP-SAT. Where both prove an answer, it must be the same; the program ends with
exit code 1 and leaves the problem in DIRECTORY if it is not.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model

COLUMNS_MAX = 200_000


def demanded(problem):
    """Exact or least counts of types, and the types that must be alone on their node."""
    text = problem["specification"].split(";")[0]
    alone = set()
    match = re.search(r"forall \?x in locations: \((.*?)> 0 impl", text)
    if match:
        alone = set(re.findall(r"\?x\.(\w+)", match.group(1)))
        text = text[: match.start()]
    counts = re.findall(r"(\w+)\s*(>=|=)\s*(\d+)", text)
    return [(name, operator, int(number)) for name, operator, number in counts], alone


def columns(problem, room, alone):
    """All multisets that fit, as dictionaries."""
    names = sorted(problem["components"])
    sizes = [problem["components"][name]["resources"] for name in names]
    found = []

    def extend(position, left, chosen):
        if len(found) > COLUMNS_MAX:
            return
        if position == len(names):
            if not (set(chosen) & alone) or sum(chosen.values()) == 1:
                found.append(dict(chosen))
            return
        most = min((left[r] // s for r, s in sizes[position].items() if s > 0), default=0)
        for count in range(most + 1):
            if count:
                chosen[names[position]] = count
            extend(position + 1, {r: left[r] - count * sizes[position].get(r, 0) for r in left}, chosen)
        chosen.pop(names[position], None)

    extend(0, dict(room), {})
    return found if len(found) <= COLUMNS_MAX else None


class CpSat:
    name = "CP-SAT"

    def __init__(self):
        self.model = cp_model.CpModel()

    def integer(self, most):
        return self.model.new_int_var(0, most, "")

    def add(self, constraint):
        self.model.add(constraint)

    def minimise(self, cost, limit):
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = limit
        solver.parameters.num_workers = 2
        self.model.minimize(cost)
        status = solver.solve(self.model)
        names = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible", cp_model.INFEASIBLE: "infeasible"}
        answer = names.get(status, "unknown")
        return answer, int(solver.objective_value) if answer in ("optimal", "feasible") else None


class Scip:
    name = "SCIP"

    def __init__(self):
        self.model = pywraplp.Solver.CreateSolver("SCIP")

    def integer(self, most):
        return self.model.IntVar(0, most, "")

    def add(self, constraint):
        self.model.Add(constraint)

    def minimise(self, cost, limit):
        self.model.SetTimeLimit(int(limit * 1000))
        self.model.Minimize(cost)
        status = self.model.Solve()
        names = {0: "optimal", 1: "feasible", 2: "infeasible"}
        answer = names.get(status, "unknown")
        return answer, round(self.model.Objective().Value()) if answer in ("optimal", "feasible") else None


class Sum:
    """A sum of variables as MiniZinc writes it; comparisons make constraints."""

    def __init__(self, factors, constant=0):
        self.factors, self.constant = factors, constant

    def __add__(self, other):
        if isinstance(other, int):
            return Sum(self.factors, self.constant + other)
        factors = dict(self.factors)
        for variable, factor in other.factors.items():
            factors[variable] = factors.get(variable, 0) + factor
        return Sum(factors, self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor):
        return Sum({variable: it * factor for variable, it in self.factors.items()}, self.constant * factor)

    __rmul__ = __mul__

    def __rsub__(self, other):
        return self * -1 + other

    def __str__(self):
        parts = [f"{factor}*{variable}" for variable, factor in self.factors.items()]
        return " + ".join(parts + [str(self.constant)])

    def __le__(self, other):
        return f"{self} <= {other}"

    def __ge__(self, other):
        return f"{self} >= {other}"

    def __eq__(self, other):
        return f"{self} = {other}"


class Gecode:
    name = "Gecode"

    def __init__(self):
        self.lines = []
        self.variables = 0

    def integer(self, most):
        self.variables += 1
        self.lines.append(f"var 0..{most}: x{self.variables};")
        return Sum({f"x{self.variables}": 1})

    def add(self, constraint):
        self.lines.append(f"constraint {constraint};")

    def minimise(self, cost, limit):
        self.lines += [f"var int: cost = {cost};", "solve minimize cost;", r'output ["cost \(cost)\n"];']
        with tempfile.NamedTemporaryFile("w", suffix=".mzn") as file:
            file.write("\n".join(self.lines))
            file.flush()
            command = ["minizinc", "--solver", "gecode", "-p", "2", "-a", "--time-limit", str(int(limit * 1000)), file.name]
            try:
                output = subprocess.run(command, capture_output=True, text=True, timeout=limit + 30).stdout
            except subprocess.TimeoutExpired as expired:
                output = (expired.stdout or b"").decode()
        found = re.findall(r"^cost (\d+)$", output, re.MULTILINE)
        if "UNSATISFIABLE" in output:
            return "infeasible", None
        if not found:
            return "unknown", None
        return "optimal" if "==========" in output else "feasible", int(found[-1])


def demands(problem, solver, count, most):
    counts, _ = demanded(problem)
    for name, operator, number in counts:
        solver.add(count[name] == number if operator == "=" else count[name] >= number)
    # Every provider here has unlimited room, and every requirement is for one provider of another type.
    for name, described in problem["components"].items():
        for port, number in described.get("requires", {}).items():
            providers = [
                other
                for other, offer in problem["components"].items()
                if any(port in stock["ports"] for stock in offer["provides"])
            ]
            solver.add(sum(count[other] for other in providers) * most >= number * count[name])


def per_node(problem, solver):
    _, alone = demanded(problem)
    most = sum(number for _, _, number in demanded(problem)[0]) * 4 + 100
    count = {name: solver.integer(most) for name in problem["components"]}
    on = {name: [] for name in problem["components"]}
    cost = []
    for location in problem["locations"].values():
        for _ in range(location["num"]):
            here = {}
            used = solver.integer(1)
            for name, described in problem["components"].items():
                fits = min(location["resources"].get(r, 0) // s for r, s in described["resources"].items() if s > 0)
                here[name] = solver.integer(max(fits, 0))
                solver.add(here[name] <= fits * used)
                on[name].append(here[name])
            for resource, room in location["resources"].items():
                sizes = problem["components"].items()
                solver.add(sum(d["resources"].get(resource, 0) * here[n] for n, d in sizes) <= room * used)
            if alone:
                single = solver.integer(1)
                total = 64
                solver.add(sum(here[name] for name in alone) <= single)
                solver.add(sum(here.values()) <= 1 + total * (1 - single))
            cost.append(location["cost"] * used)
    for name, parts in on.items():
        solver.add(sum(parts) == count[name])
    demands(problem, solver, count, most)
    return sum(cost)


def by_columns(problem, solver):
    _, alone = demanded(problem)
    most = sum(number for _, _, number in demanded(problem)[0]) * 4 + 100
    count = {name: solver.integer(most) for name in problem["components"]}
    on = {name: [] for name in problem["components"]}
    cost = []
    for location in problem["locations"].values():
        multisets = columns(problem, location["resources"], alone)
        if multisets is None:
            return None
        used = []
        for multiset in multisets:
            if not multiset:
                continue
            times = solver.integer(location["num"])
            used.append(times)
            cost.append(location["cost"] * times)
            for name, number in multiset.items():
                on[name].append(number * times)
        solver.add(sum(used) <= location["num"])
    for name, parts in on.items():
        solver.add(sum(parts) == count[name])
    demands(problem, solver, count, most)
    return sum(cost)


def scaling_problem(dice):
    """A random problem of the shape of the published scaling problems."""
    components, counts = {}, []
    workers = dice.randint(4, 10)
    ports = [f"p{number}" for number in range(dice.randint(2, 4))]
    for port in ports:
        # Both provide the same: a balancer on paid nodes, an object on the free one.
        balancer, thing = {"Cores": dice.randint(1, 2), "Memory": 100}, {"Slot": 1}
        for name, resources in ((f"Balancer_{port}", balancer), (f"Object_{port}", thing)):
            limit = dice.choice([-1, -1, dice.randint(1, 4)])
            components[name] = {"resources": resources, "requires": {}, "provides": [{"ports": [port], "num": limit}]}
    for number in range(workers):
        requires = {port: 1 for port in dice.sample(ports, dice.randint(0, 2))}
        unlimited = [port for port in requires if all(o["provides"][0]["num"] < 0 for o in providers(components, port))]
        for port in unlimited:
            requires[port] = dice.choice([1, 1, 2])
        resources = {"Cores": dice.choice([1, 2, 2, 4]), "Memory": 100 * dice.randint(1, 5)}
        components[f"Worker{number}"] = {"resources": resources, "requires": requires, "provides": []}
        counts.append(f"Worker{number} {dice.choice(['=', '=', '>='])} {dice.randint(0, 4)}")
    locations = {
        "small": {"num": 12, "cost": dice.randint(90, 130), "resources": {"Cores": 2, "Memory": 375}},
        "medium": {"num": 8, "cost": dice.randint(190, 250), "resources": {"Cores": 4, "Memory": 750}},
        "large": {"num": 4, "cost": dice.randint(400, 500), "resources": {"Cores": 8, "Memory": 1500}},
        "free": {"num": 1, "cost": 0, "resources": {"Slot": dice.choice([0, 2, 1000])}},
    }
    if dice.random() < 0.3:
        resources = {"Cores": 1000, "Memory": 100_000, "Slot": 1000}
        locations["huge"] = {"num": 1, "cost": dice.randint(300, 4000), "resources": resources}
    return {
        "components": components,
        "locations": locations,
        "specification": f"{' and '.join(counts)}; cost; (sum ?x in components: ?x)",
    }


def providers(components, port):
    return [described for described in components.values() if any(port in o["ports"] for o in described["provides"])]


def by_cp_sat(problem, limit):
    """The cost and the number of components, in this order, each with whether it is proven."""
    answers = []
    for goal in range(2):
        model = cp_model.CpModel()
        count = {name: model.new_int_var(0, 200, name) for name in problem["components"]}
        on = {name: [] for name in problem["components"]}
        cost = []
        for location in problem["locations"].values():
            alike = []
            for _ in range(location["num"]):
                used, here = model.new_bool_var(""), {}
                for name, described in problem["components"].items():
                    sizes = described["resources"].items()
                    fits = min(min(location["resources"].get(r, 0) // s for r, s in sizes), 200)
                    here[name] = model.new_int_var(0, fits, "")
                    on[name].append(here[name])
                for resource, room in location["resources"].items():
                    sizes = [d["resources"].get(resource, 0) * here[n] for n, d in problem["components"].items()]
                    model.add(sum(sizes) <= room * used)
                cost.append(location["cost"] * used)
                alike.append(used)
            for first, second in zip(alike, alike[1:]):
                model.add(first >= second)
        for name, parts in on.items():
            model.add(sum(parts) == count[name])
        for name, operator, number in demanded(problem)[0]:
            model.add(count[name] == number if operator == "=" else count[name] >= number)
        for port in {port for described in problem["components"].values() for port in described["requires"]}:
            clients = [(d["requires"][port], count[n]) for n, d in problem["components"].items() if port in d["requires"]]
            offers = [
                (offer["num"], count[name])
                for name, described in problem["components"].items()
                for offer in described["provides"]
                if port in offer["ports"]
            ]
            for number, client in clients:
                present = model.new_bool_var("")
                model.add(client == 0).only_enforce_if(present.Not())
                model.add(sum(provider for _, provider in offers) >= number).only_enforce_if(present)
            boundless = model.new_bool_var("")
            model.add(sum(provider for limit, provider in offers if limit < 0) >= 1).only_enforce_if(boundless)
            room = sum(limit * provider for limit, provider in offers if limit > 0)
            model.add(sum(n * client for n, client in clients) <= room).only_enforce_if(boundless.Not())
        if goal == 1:
            model.add(sum(cost) == answers[0][1])
        model.minimize(sum(cost) if goal == 0 else sum(count.values()))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = limit
        solver.parameters.num_workers = 1
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            return "infeasible", []
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return "unknown", [value for _, value in answers]
        answers.append((status == cp_model.OPTIMAL, round(solver.objective_value)))
        if not answers[-1][0]:
            return "feasible", [value for _, value in answers]
    return "optimal", [value for _, value in answers]


def compare(arguments):
    """Random problems, each given to the planner and to CP-SAT."""
    same = open_there = open_here = 0
    ours_seconds = theirs_seconds = slowest = 0.0
    for seed in range(arguments.seed, arguments.seed + arguments.random):
        problem = scaling_problem(random.Random(seed))
        path = arguments.directory / f"random-{seed}.json"
        path.write_text(json.dumps(problem))
        row = subprocess.run([arguments.ours, path], capture_output=True, text=True, check=True).stdout
        _, _, status, values, shown, _ = (field.strip() for field in row.split("|"))
        ours = [int(value) for value in values.split()]
        seconds = float(shown.split()[0]) / 1000
        ours_seconds, slowest = ours_seconds + seconds, max(slowest, seconds)
        start = time.monotonic()
        their_status, theirs = by_cp_sat(problem, arguments.limit)
        theirs_seconds += time.monotonic() - start
        proven = {"optimal", "infeasible"}
        worse = their_status == "feasible" and theirs and status == "optimal" and theirs[0] < ours[0]
        if (status in proven and their_status in proven and (status, ours) != (their_status, theirs)) or worse:
            print(f"{path}: planner {status} {ours}, CP-SAT {their_status} {theirs}")
            sys.exit(1)
        open_here += status not in proven
        open_there += their_status not in proven
        same += status in proven and their_status in proven
        path.unlink()
    print(
        f"{arguments.random} random problems: {same} with the same proven answer; not proven: planner {open_here}, "
        f"CP-SAT {open_there}; mean time: planner {ours_seconds / arguments.random * 1000:.1f} ms (slowest "
        f"{slowest * 1000:.0f} ms), CP-SAT {theirs_seconds / arguments.random * 1000:.0f} ms"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--ours", help="the compiled program `planner`, measured beside the others")
    parser.add_argument("--random", type=int, help="compare this many random problems instead")
    parser.add_argument("--seed", type=int, default=0, help="the first random problem")
    arguments = parser.parse_intermixed_args()
    if arguments.random:
        return compare(arguments)
    rivals = (CpSat, Scip, Gecode) if shutil.which("minizinc") else (CpSat, Scip)
    known = pathlib.Path(__file__).parent.parent / "planner" / "tests" / "instances"
    print("| problem | solver | model | status | cost | time |\n|---|---|---|---|---|---|")
    for name in arguments.names:
        path = arguments.directory / f"{name}.json"
        path = path if path.exists() else known / f"{name}.json"
        problem = json.loads(path.read_text())
        if arguments.ours:
            row = subprocess.run([arguments.ours, path], capture_output=True, text=True, check=True).stdout
            _, _, status, values, shown, _ = (field.strip() for field in row.split("|"))
            print(f"| {name} | planner | columns | {status} | {values.split(' ')[0]} | {shown} |", flush=True)
        for model, build in (("a variable for each node and type", per_node), ("columns", by_columns)):
            for make in rivals:
                start = time.monotonic()
                solver = make()
                cost = build(problem, solver)
                if cost is None:
                    print(f"| {name} | {make.name} | {model} | more than {COLUMNS_MAX} columns | | |", flush=True)
                    continue
                answer, value = solver.minimise(cost, arguments.limit)
                seconds = time.monotonic() - start
                shown = "" if value is None else value
                print(f"| {name} | {make.name} | {model} | {answer} | {shown} | {seconds:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
