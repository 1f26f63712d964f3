#!/usr/bin/env python3
"""Gives the problems of `planner --write DIRECTORY` and the known ones to other solvers.

    python3 bench/planner_rivals.py DIRECTORY [--limit SECONDS] [--ours PROGRAM] [NAME ...]

Two models: the published one (an integer for each node and type) and the one the planner uses (an integer for each
multiset of components that fits on a node of a class). Three solvers: CP-SAT and SCIP from the PyPI package `ortools`,
and Gecode by way of MiniZinc, if the program `minizinc` is there. Only conjunctions of counts and "alone on its node" are
translated; that covers the problems measured here.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model

COLUMNS_MAX = 200_000


def wish(problem):
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
    counts, _ = wish(problem)
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
    _, alone = wish(problem)
    most = sum(number for _, _, number in wish(problem)[0]) * 4 + 100
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
    _, alone = wish(problem)
    most = sum(number for _, _, number in wish(problem)[0]) * 4 + 100
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--ours", help="the compiled program `planner`, measured beside the others")
    arguments = parser.parse_intermixed_args()
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
