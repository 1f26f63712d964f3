"""The workload: what is to run, what each scenario changes, how long that must take, and whether it was done right."""
import json
import os
import shutil
import zlib

TIERS = 3


def address(host):
    return f"127.0.{1 + host // 200}.{1 + host % 200}"


def application(size, shape):
    """`size` components, one on each host, in TIERS tiers. A component needs the one of its column in the tier below
    (`one`), or all of that tier (`all`). Hosts are counted column by column, so that a small application is the
    beginning of a larger one."""
    columns = range(size // TIERS)
    below = lambda tier, column: [] if tier == 1 else [f"t{tier - 1}c{it}" for it in (columns if shape == "all" else [column])]
    return {
        f"t{tier}c{column}": {
            "id": f"t{tier}c{column}", "tier": tier, "address": address(column * TIERS + tier - 1),
            "needs": below(tier, column), "version": "1",
        }
        for column in columns for tier in range(1, TIERS + 1)
    }


def dependents(components, roots):
    """The roots, and whoever depends on them."""
    found, open_ = set(), set(roots)
    while open_:
        found |= open_
        open_ = {it["id"] for it in components.values() if found.intersection(it["needs"])} - found
    return found


def plan(scenario, size, shape):
    """What there is in the end, and which of it is stopped and started on the way."""
    if scenario == "scale":
        before, after = application(size, shape), application(2 * size, shape)
        changed = {it for it in before if before[it]["needs"] != after[it]["needs"]}
        stop = dependents(before, changed)
        return {"components": after, "stop": sorted(stop), "start": sorted(stop | (set(after) - set(before)))}
    components = application(size, shape)
    everything = sorted(components)
    if scenario == "deploy":
        return {"components": components, "stop": [], "start": everything}
    if scenario == "replace":
        components["t1c0"]["version"] = "2"
        affected = sorted(dependents(components, ["t1c0"]))
        return {"components": components, "stop": affected, "start": affected}
    raise ValueError(scenario)


def seconds(starts, component):
    """How long a start takes: always the same, or between 0.05 and 0.4 s by the component's name."""
    if starts == "varied":
        return 0.05 * (1 + zlib.crc32(component.encode()) % 8)
    return float(starts)


def critical_path(plan, starts):
    """The longest chain of starts: nobody can be quicker. Stopping takes no time."""
    ends = {}
    for it in sorted(plan["components"].values(), key=lambda it: it["tier"]):
        ready = max([ends[need] for need in it["needs"]], default=0)
        ends[it["id"]] = ready + (seconds(starts, it["id"]) if it["id"] in plan["start"] else 0)
    return max(ends.values())


def write(plan, path, scenario, size, shape):
    with open(path + ".json", "w") as file:
        json.dump({**plan, "scenario": scenario, "size": size, "shape": shape}, file)
    with open(path + ".tsv", "w") as file:  # for shells: id, tier, address, needs, stop?, start?, version
        for it in plan["components"].values():
            fields = [it["id"], it["tier"], it["address"], ",".join(it["needs"]) or "-", int(it["id"] in plan["stop"]),
                      int(it["id"] in plan["start"]), it["version"]]
            file.write("\t".join(map(str, fields)) + "\n")


def clear(base, components, starts):
    """Empties every host."""
    shutil.rmtree(os.path.join(base, "hosts"), ignore_errors=True)
    for it in components:
        place = os.path.join(base, "hosts", it)
        os.makedirs(place)
        open(os.path.join(place, "state"), "w").close()
        with open(os.path.join(place, "seconds"), "w") as file:
            file.write(f"{seconds(starts, it):g}\n")


class World:
    """What runs, with which version and endpoint, and which endpoints it was told; learnt from the journal."""

    def __init__(self):
        self.running = {}  # id -> (endpoint, version, {provider: endpoint})
        self.using = {}    # id -> the providers it counts on, from the beginning of its start to the end of its stop

    def follow(self, journal, components):
        """Replays a journal. Returns how often a component came to count on a provider that was not running."""
        with open(journal) as file:
            events = sorted((line.split(maxsplit=3) for line in file), key=lambda event: float(event[0]))
        violations, broken = 0, set()
        for _, what, component, *more in events:
            if what == "starting":
                self.using[component] = set(components[component]["needs"])
            elif what == "started":
                endpoint, version, told = more[0].strip().split("|")
                self.running[component] = (endpoint, version, dict(it.split("=", 1) for it in told.split(",") if it))
            elif what == "stopping":
                self.running.pop(component, None)
            elif what == "stopped":
                self.using.pop(component, None)
            now = {it for it, providers in self.using.items() if not providers <= self.running.keys()}
            violations += len(now - broken)
            broken = now
        return violations

    def complaints(self, components):
        """What is not as it should be in the end."""
        found = [f"{it} does not run" for it in components if it not in self.running]
        for it in components.keys() & self.running.keys():
            _, version, told = self.running[it]
            if version != components[it]["version"]:
                found.append(f"{it} has version {version}")
            now = {need: self.running[need][0] for need in components[it]["needs"] if need in self.running}
            if told != now:
                found.append(f"{it} was told {told}, not {now}")
        return found
