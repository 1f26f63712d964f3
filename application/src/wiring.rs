//! Wiring: which client is bound to which provider.
//!
//! `all`, `index` and names leave no choice. `one` does: a client stays with its provider for as long as that provider
//! exists and has capacity; a new client, or one that lost its provider, goes to the provider with the fewest clients,
//! then the lowest number. So adding clients or providers changes no existing binding, and removing a provider moves
//! only its own clients.

use crate::{
    Application, Existing,
    application::{ComponentGroup, Target, Way},
    component_type::{NeedSort, TypeImport},
    expansion::{Expansion, Key, Reference},
    nearest::{hint, listed},
    problem::Findings,
};
use protocol::Name;
use std::collections::{BTreeMap, BTreeSet};

/// All components that offer an export, and how many clients each has.
#[derive(Default)]
struct Market {
    providers: Vec<Reference>,
    places: BTreeMap<Reference, usize>,
    capacity: Vec<Option<u32>>,
    clients: Vec<u32>,
}

impl Market {
    fn has_room(&self, place: usize) -> bool {
        self.capacity[place].is_none_or(|capacity| self.clients[place] < capacity)
    }
}

/// One import of one group, and all that may provide it.
struct Demand<'a> {
    name: &'a Name,
    group: &'a ComponentGroup,
    import_name: &'a Name,
    import: &'a TypeImport,
    way: Way,
    /// Places in the market.
    candidates: Vec<usize>,
    span: crate::source::Span,
}

/// Binds every import of every component; missing providers are reported.
pub(crate) fn wire(
    application: &Application,
    existing: &Existing<'_>,
    expansion: &mut Expansion,
    findings: &mut Findings,
) {
    let mut markets = markets(application, existing);
    let mut demands = Vec::new();
    for (name, group) in &application.components {
        for (import_name, import) in &application.type_of(group).imports {
            demands.extend(demand(application, existing, (name, group), (import_name, import), &mut markets, findings));
        }
    }
    // Imports without a choice first, so that the others can take them into account.
    demands.sort_by_key(|demand| demand.way == Way::One);
    for demand in &demands {
        let market = markets.entry(demand.import.export.clone()).or_default();
        let bound = match demand.way {
            Way::One => one(demand, existing.before, market, findings),
            Way::All | Way::Index | Way::Nobody => fixed(demand, market, findings),
        };
        for (index, providers) in bound.into_iter().enumerate() {
            let key = Key::new(demand.name, u32::try_from(index).unwrap_or(u32::MAX));
            let Some(component) = expansion.components.get_mut(&key).filter(|_| !providers.is_empty()) else {
                continue;
            };
            let mut providers: Vec<Reference> =
                providers.into_iter().map(|place| market.providers[place].clone()).collect();
            providers.sort();
            component.bound.insert(demand.import_name.clone(), providers);
        }
    }
    for demand in demands.iter().filter(|demand| demand.way != Way::One) {
        let market = &markets[&demand.import.export];
        let full = demand
            .candidates
            .iter()
            .find(|place| market.capacity[**place].is_some_and(|it| market.clients[**place] > it));
        if let Some(place) = full {
            let (provider, clients) = (&market.providers[*place], market.clients[*place]);
            let capacity = market.capacity[*place].unwrap_or_default();
            let says = format!(
                "`{provider}.{}` has a capacity of {capacity} clients, and {clients} are bound to it",
                demand.import.export
            );
            findings.add(demand.span, says);
        }
    }
}

/// All components that offer something, here and in other applications, with the clients that others have there
/// already.
fn markets(application: &Application, existing: &Existing<'_>) -> BTreeMap<Name, Market> {
    let mut markets: BTreeMap<Name, Market> = BTreeMap::new();
    let mut offer = |export: &Name, capacity: Option<u32>, provider: Reference| {
        let market = markets.entry(export.clone()).or_default();
        market.places.insert(provider.clone(), market.providers.len());
        market.providers.push(provider);
        market.capacity.push(capacity);
        market.clients.push(0);
    };
    for (name, group) in &application.components {
        for (export, it) in &application.type_of(group).exports {
            (0..group.count).for_each(|index| {
                offer(export, it.capacity, Reference { application: None, key: Key::new(name, index) });
            });
        }
    }
    for other in existing.others {
        for key in other.components.keys() {
            for (export, it) in &other.definitions[&key.group].exports {
                offer(
                    export,
                    it.capacity,
                    Reference { application: Some(other.application.clone()), key: key.clone() },
                );
            }
        }
    }
    for other in existing.others {
        for (key, component) in &other.components {
            for (import, providers) in &component.bound {
                let Some(import) = other.definitions[&key.group].imports.get(import) else { continue };
                for provider in providers {
                    let home = provider.application.as_ref().unwrap_or(&other.application);
                    let seen = Reference {
                        application: Some(home.clone()).filter(|it| *it != application.name),
                        key: provider.key.clone(),
                    };
                    let market = markets.get_mut(&import.export);
                    if let Some((market, place)) =
                        market.and_then(|it| it.places.get(&seen).copied().map(|place| (it, place)))
                    {
                        market.clients[place] += 1;
                    }
                }
            }
        }
    }
    markets
}

fn demand<'a>(
    application: &'a Application,
    existing: &Existing<'_>,
    (name, group): (&'a Name, &'a ComponentGroup),
    (import_name, import): (&'a Name, &'a TypeImport),
    markets: &mut BTreeMap<Name, Market>,
    findings: &mut Findings,
) -> Option<Demand<'a>> {
    let wiring = group.wiring.get(import_name);
    let span = wiring.map_or(group.span, |it| it.span);
    let own_way = if import.number.is_none() { Way::All } else { Way::One };
    let market = markets.entry(import.export.clone()).or_default();
    let (way, candidates) = match wiring.filter(|it| !it.to.is_empty() || it.way == Some(Way::Nobody)) {
        Some(wiring) => {
            let named = wiring.to.len() > 1 || wiring.to.iter().any(|it| it.index.is_some());
            let way = wiring.way.unwrap_or(if named { Way::All } else { own_way });
            let mut candidates = Vec::new();
            let mut known = true;
            for target in &wiring.to {
                known &= target.application.is_some() || !application.is_doubtful(&target.group);
                match providers(application, existing, target, import, market) {
                    Ok(found) => candidates.extend(found),
                    Err(says) => {
                        findings.add(target.span, says);
                        known = false;
                    }
                }
            }
            if !known {
                return None;
            }
            (way, candidates)
        }
        None => {
            let offers = |other: &&Name| {
                application.type_of(&application.components[*other]).exports.contains_key(&import.export)
            };
            let groups: Vec<&Name> = application.components.keys().filter(|it| *it != name).filter(offers).collect();
            let group_names: Vec<&str> = groups.iter().map(|it| it.as_str()).collect();
            if groups.len() > 1 {
                let says = format!(
                    "import `{import_name}` of `{name}` could be bound to {} (choose with `bind: {{ {import_name}: {} }}`, or `none`)",
                    listed(&group_names),
                    group_names[0]
                );
                findings.add(span, says);
                return None;
            }
            if groups.first().is_some_and(|it| application.is_doubtful(it)) {
                return None;
            }
            let candidates =
                groups.first().map(|it| (0..application.components[*it].count).map(|index| Key::new(it, index)));
            let places = candidates
                .into_iter()
                .flatten()
                .filter_map(|key| market.places.get(&Reference { application: None, key }).copied());
            (wiring.and_then(|it| it.way).unwrap_or(own_way), places.collect())
        }
    };
    let none_wanted = import.sort == NeedSort::Weak && import.number.is_none_or(|it| it == 0);
    if candidates.is_empty() && way != Way::Nobody && !none_wanted && group.count > 0 {
        // The provider may be what could not be read.
        let named = wiring.map(|it| it.to.as_slice()).unwrap_or_default();
        if named.is_empty() && !application.lacks_exports() {
            findings.add(span, nobody(application, (name, group), (import_name, import)));
        }
        if !named.is_empty() {
            let named: Vec<String> = named.iter().map(ToString::to_string).collect();
            let says = format!(
                "import `{import_name}` of `{name}` is bound to `{}`, whose `count` is 0",
                named.join("` and `")
            );
            findings.add(span, says);
        }
        return None;
    }
    Some(Demand { name, group, import_name, import, way, candidates, span })
}

/// The problem that no other component has what an import needs.
fn nobody(
    application: &Application,
    (name, group): (&Name, &ComponentGroup),
    (import_name, import): (&Name, &TypeImport),
) -> String {
    let export = &import.export;
    let needs = format!("import `{import_name}` of `{name}` needs export `{export}`");
    if application.type_of(group).exports.contains_key(export) {
        return format!(
            "{needs}, which only `{name}` itself has (if that is intended: `bind: {{ {import_name}: {{ from: {name} }} }}`)"
        );
    }
    let offers = |it: &(&Name, &ComponentGroup)| application.type_of(it.1).exports.contains_key(export);
    if let Some((other, _)) = application.components.iter().find(offers) {
        return format!("{needs}, which `{other}` has, but its `count` is 0");
    }
    let known = application.components.values().flat_map(|it| application.type_of(it).exports.keys());
    let known: BTreeSet<&str> = known.map(Name::as_str).collect();
    format!("{needs}, and no component has it{}", hint(export.as_str(), known))
}

/// The places of those that a wiring names, or what is wrong with the name.
fn providers(
    application: &Application,
    existing: &Existing<'_>,
    target: &Target,
    import: &TypeImport,
    market: &Market,
) -> Result<Vec<usize>, String> {
    let Target { group, index, .. } = target;
    let home = target.application.as_ref().filter(|it| **it != application.name);
    let (count, exports): (u32, Vec<&str>) = match home {
        None => {
            if application.is_doubtful(group) {
                return Ok(Vec::new());
            }
            let Some(found) = application.components.get(group) else {
                return Err(format!(
                    "unknown component `{group}`{}",
                    hint(group.as_str(), application.components.keys().map(Name::as_str))
                ));
            };
            (found.count, application.type_of(found).exports.keys().map(Name::as_str).collect())
        }
        Some(home) => {
            let Some(other) = existing.others.iter().find(|it| it.application == *home) else {
                // It is unknown whether the manager has none, or was not asked.
                if existing.others.is_empty() {
                    return Err(format!(
                        "unknown application `{home}` (apply it first; `plan` asks the manager only with `--live`)"
                    ));
                }
                let known = existing.others.iter().map(|it| it.application.as_str());
                return Err(format!("the manager has no application `{home}`{}", hint(home.as_str(), known)));
            };
            let Some(definition) = other.definitions.get(group) else {
                let known = other.definitions.keys().map(Name::as_str);
                return Err(format!("application `{home}` has no component `{group}`{}", hint(group.as_str(), known)));
            };
            let count = other.components.keys().filter(|key| key.group == *group).count();
            (u32::try_from(count).unwrap_or(u32::MAX), definition.exports.keys().map(Name::as_str).collect())
        }
    };
    if !exports.contains(&import.export.as_str()) {
        return Err(format!("`{group}` does not export `{}` (it exports {})", import.export, listed(&exports)));
    }
    if let Some(index) = index.filter(|index| *index >= count) {
        return Err(format!("there is no `{group}[{index}]`: `{group}` has {count}, numbered from 0"));
    }
    let indices = index.map_or(0..count, |index| index..index + 1);
    let reference = |index| Reference { application: home.cloned(), key: Key::new(group, index) };
    Ok(indices.filter_map(|index| market.places.get(&reference(index)).copied()).collect())
}

/// The providers of each client where there is no choice.
fn fixed(demand: &Demand<'_>, market: &mut Market, findings: &mut Findings) -> Vec<Vec<usize>> {
    let Demand { name, group, import_name, import, candidates, .. } = demand;
    let own = |index: u32| market.places.get(&Reference { application: None, key: Key::new(name, index) }).copied();
    let mut bound: Vec<Vec<usize>> = Vec::new();
    for index in 0..group.count {
        let own = own(index);
        let mut providers: Vec<usize> = match demand.way {
            Way::Index => {
                usize::try_from(index).ok().and_then(|index| candidates.get(index)).into_iter().copied().collect()
            }
            Way::Nobody => Vec::new(),
            Way::All | Way::One => candidates.clone(),
        };
        providers.retain(|place| Some(*place) != own);
        providers.sort_unstable();
        providers.dedup();
        bound.push(providers);
    }
    let needed = import.number.unwrap_or(u32::from(import.sort != NeedSort::Weak));
    let short = bound.iter().position(|it| u32::try_from(it.len()).unwrap_or(u32::MAX) < needed);
    if let Some(index) = short {
        let says = match demand.way {
            Way::Index if needed > 1 => format!(
                "`{name}[{index}].{import_name}` needs {needed} providers, but `index` gives each client one (bind it to `all` or `one`)"
            ),
            Way::Index => format!(
                "`{name}[{index}]` has no provider: by `index` there are {} providers for {} clients of `{import_name}`",
                candidates.len(),
                group.count
            ),
            _ => format!(
                "`{name}[{index}].{import_name}` needs {needed} providers, but is bound to {}",
                bound[index].len()
            ),
        };
        findings.add(demand.span, says);
    }
    bound.iter().flatten().for_each(|place| market.clients[*place] += 1);
    bound
}

/// The providers of each client, spread evenly, with as few changes as possible.
fn one(
    demand: &Demand<'_>,
    before: Option<&Expansion>,
    market: &mut Market,
    findings: &mut Findings,
) -> Vec<Vec<usize>> {
    let Demand { name, group, import_name, import, candidates, .. } = demand;
    let optional = import.sort == NeedSort::Weak && import.number.is_none_or(|it| it == 0);
    let wanted = usize::try_from(import.number.unwrap_or(1).max(1)).unwrap_or(usize::MAX);
    let allowed: BTreeSet<usize> = candidates.iter().copied().collect();
    let mut bound: Vec<Vec<usize>> = Vec::new();
    for index in 0..group.count {
        let past = before.and_then(|it| it.components.get(&Key::new(name, index))?.bound.get(*import_name));
        let mut kept = Vec::new();
        for provider in past.into_iter().flatten() {
            let place = market.places.get(provider).copied().filter(|it| allowed.contains(it) && market.has_room(*it));
            if let Some(place) = place.filter(|_| kept.len() < wanted) {
                market.clients[place] += 1;
                kept.push(place);
            }
        }
        bound.push(kept);
    }
    let mut order: BTreeSet<(u32, usize)> =
        allowed.iter().filter(|place| market.has_room(**place)).map(|place| (market.clients[*place], *place)).collect();
    let mut left_out = 0_usize;
    for (index, providers) in bound.iter_mut().enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let own = market.places.get(&Reference { application: None, key: Key::new(name, index) }).copied();
        while providers.len() < wanted {
            let free = |it: &&(u32, usize)| !providers.contains(&it.1) && Some(it.1) != own;
            let Some(best) = order.iter().find(free).copied() else { break };
            order.remove(&best);
            market.clients[best.1] += 1;
            if market.has_room(best.1) {
                order.insert((market.clients[best.1], best.1));
            }
            providers.push(best.1);
        }
        left_out += usize::from(providers.len() < wanted && !optional);
    }
    if left_out > 0 {
        let room = candidates.iter().try_fold(0_u64, |sum, place| Some(sum + u64::from(market.capacity[*place]?)));
        let why = match room {
            _ if candidates.len() < wanted => format!("there are {} of them", candidates.len()),
            Some(room) => format!("together they have capacity for {room} clients"),
            None => format!("there are {} of them", candidates.len()),
        };
        let says = format!(
            "{left_out} of the {} components of `{name}` cannot be bound to the {wanted} providers that `{import_name}` needs: {why} (add providers, or raise the capacity of export `{}`)",
            group.count, import.export
        );
        findings.add(demand.span, says);
    }
    bound
}
