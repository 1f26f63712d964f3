//! The client's side of bindings.
//!
//! A holding is what a client's agent knows of one binding. Of a loan the client knows the address first (`Bound`), may
//! then use it (`Held`), and is asked for it back (`Recalled`). Of a value there is nothing to wait for: it is `Held` as
//! soon as it is known.

use super::{rebinding::Rebinding, told::Told};
use crate::{BindingId, HeldBinding, Kind, Name, Need, ShortMap, ShortSet, Values, VmId};
use serde::{Deserialize, Serialize};

/// Where a holding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HoldingState {
    /// The address is known; the provider has not lent yet.
    Bound,
    /// It may be used.
    Held,
    /// It was asked back and has not been given back; `last`: for good.
    Recalled {
        /// The binding is then to be forgotten.
        last: bool,
    },
}

/// One binding, seen by its client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Holding {
    pub(super) provider_vm: VmId,
    pub(super) import: Name,
    pub(super) values: Values,
    state: HoldingState,
    /// Whether the manager was last told that it is held.
    reported: bool,
}

impl Holding {
    pub(super) fn new(provider_vm: VmId, import: Name, values: Values) -> Self {
        Self { provider_vm, import, values, state: HoldingState::Bound, reported: false }
    }

    /// Where the provider lives.
    pub fn provider_vm(&self) -> VmId {
        self.provider_vm
    }

    /// The import it serves.
    pub fn import(&self) -> &Name {
        &self.import
    }

    /// How to reach the provider, as the client knows it.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Where it is.
    pub fn state(&self) -> HoldingState {
        self.state
    }
}

/// How one import stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImportState {
    /// What it needs now.
    pub need: Need,
    /// A higher number that was ordered when fewer were held. The component must stop if it runs, and starts again once
    /// that many are held; then it is what the import needs.
    pub raise: Option<u32>,
    /// How many are held and not recalled.
    pub held: u32,
    /// Whether something was lost with its provider's VM in the present run, and left too little. The component cannot help
    /// running with too little until it has stopped.
    pub bereft: bool,
}

impl ImportState {
    /// Whether the component may run, as far as this import goes.
    pub fn is_enough(&self) -> bool {
        self.need.with_number(self.raise.unwrap_or(self.need.number())).is_met_by(self.held)
    }
}

/// All that one component holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Holdings {
    all: ShortMap<BindingId, Holding>,
    /// Those recalled and not given back, by the import they serve, so that a step need not look at all.
    recalled: ShortMap<Name, ShortSet<BindingId>>,
    /// Those that may have to be reported when the step ends.
    unreported: ShortSet<BindingId>,
    /// Empty while the component is not yet known.
    imports: ShortMap<Name, ImportState>,
    /// What the component was told of all this.
    knowledge: Knowledge,
}

/// What a component was told of its holdings, and how it can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Knowledge {
    /// Nothing: the component is not yet known.
    #[default]
    None,
    /// It is told when it starts, and at no other time.
    AtStart(Told),
    /// It is told by rebinds while it runs.
    ByRebind(Rebinding),
}

impl Holdings {
    /// What was parked, once the component's kind is known.
    pub(super) fn known(self, kind: &Kind) -> Self {
        let fresh = |import: &crate::Import| ImportState { need: import.need, raise: None, held: 0, bereft: false };
        let imports = kind.imports.iter().map(|(name, import)| (name.clone(), fresh(import))).collect();
        let knowledge = match kind.rebinds {
            true => Knowledge::ByRebind(Rebinding::default()),
            false => Knowledge::AtStart(Told::default()),
        };
        let mut known = Self { imports, knowledge, ..Self::default() };
        for (binding, holding) in self.all {
            let state = holding.state;
            known.bind(binding, Holding { state: HoldingState::Bound, ..holding }, false);
            if state == HoldingState::Held {
                known.put(binding, HoldingState::Held, false);
            }
        }
        known
    }

    /// Every holding.
    pub fn iter(&self) -> impl Iterator<Item = (BindingId, &Holding)> {
        self.all.iter().map(|(binding, holding)| (*binding, holding))
    }

    /// One holding.
    pub fn get(&self, binding: BindingId) -> Option<&Holding> {
        self.all.get(&binding)
    }

    /// How each import stands.
    pub fn imports(&self) -> &ShortMap<Name, ImportState> {
        &self.imports
    }

    /// Whether nothing is known of any binding.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether every strong import has enough loans and every value import its values (rules C1 and C2).
    pub fn are_enough(&self) -> bool {
        self.imports.values().all(ImportState::is_enough)
    }

    /// Whether a rebind under way leaves a recalled holding out, so that it is given back when the rebind is done.
    pub fn is_let_go(&self, binding: BindingId) -> bool {
        self.rebinding().is_some_and(|it| it.is_let_go(binding))
    }

    /// Rule C7: whether something that the present run has held has come back as something else.
    pub(super) fn call_for_a_restart(&self) -> bool {
        matches!(&self.knowledge, Knowledge::AtStart(told) if told.misses().next().is_some())
    }

    /// How a component that can rebind stands to what it was last told; nothing of one that cannot.
    pub(super) fn rebinding(&self) -> Option<&Rebinding> {
        if let Knowledge::ByRebind(rebinding) = &self.knowledge { Some(rebinding) } else { None }
    }

    /// All that a start tells the component.
    pub(super) fn start(&mut self) -> Vec<HeldBinding> {
        if let Knowledge::ByRebind(rebinding) = &mut self.knowledge {
            rebinding.start();
        }
        self.usable()
    }

    /// A rebind begins: it tells all that is held, and leaves these out.
    pub(super) fn begin_rebind(&mut self, let_go: ShortSet<BindingId>) -> Vec<HeldBinding> {
        if let Knowledge::ByRebind(rebinding) = &mut self.knowledge {
            rebinding.begin(let_go);
        }
        self.usable()
    }

    /// The rebind under way is done. Returns what it has left out, which can be given back.
    pub(super) fn rebound(&mut self) -> ShortSet<BindingId> {
        let Knowledge::ByRebind(rebinding) = &mut self.knowledge else { return ShortSet::default() };
        let (told, let_go) = rebinding.succeed();
        self.unreported.extend(told);
        let_go
    }

    /// The rebind under way has failed.
    pub(super) fn not_rebound(&mut self) {
        if let Knowledge::ByRebind(rebinding) = &mut self.knowledge {
            rebinding.fail();
        }
    }

    /// A run begins, or has ended.
    pub(super) fn tell(&mut self, begins: bool) {
        self.imports.change_all(|import| import.bereft = false);
        match &mut self.knowledge {
            Knowledge::None => {}
            Knowledge::ByRebind(rebinding) => self.unreported.extend(rebinding.reset()),
            Knowledge::AtStart(told) => {
                let missed: Vec<Name> = told.misses().cloned().collect();
                if begins {
                    told.begin();
                } else {
                    told.end();
                }
                missed.iter().for_each(|import| self.look_again(import));
            }
        }
    }

    /// The manager may have to be told something else of all bindings of an import.
    fn look_again(&mut self, import: &Name) {
        let serving = self.all.iter().filter(|(_, holding)| holding.import == *import);
        self.unreported.extend(serving.map(|(binding, _)| *binding));
    }

    /// What the manager has not been told: each binding that is held now and was not, or the other way round. What only a
    /// rebind or a restart can take into use does not count as held before.
    pub(super) fn news(&mut self) -> Vec<(BindingId, bool)> {
        let mut news = Vec::new();
        let missed: Vec<Name> = match &self.knowledge {
            Knowledge::AtStart(told) => told.misses().cloned().collect(),
            Knowledge::ByRebind(_) | Knowledge::None => Vec::new(),
        };
        for binding in std::mem::take(&mut self.unreported) {
            let Some(holding) = self.all.get_mut(&binding) else {
                news.push((binding, false));
                continue;
            };
            let missed = match &self.knowledge {
                Knowledge::None => false,
                Knowledge::ByRebind(rebinding) => rebinding.is_untold(binding),
                Knowledge::AtStart(told) => {
                    missed.contains(&holding.import) && told.is_fresh(&holding.import, &holding.values)
                }
            };
            let held = holding.state == HoldingState::Held && !missed;
            if std::mem::replace(&mut holding.reported, held) != held {
                news.push((binding, held));
            }
        }
        news
    }

    /// The recalled holdings, in order.
    pub(super) fn recalled(&self) -> ShortSet<BindingId> {
        self.recalled.values().flat_map(ShortSet::iter).copied().collect()
    }

    /// Rule C3: the recalled holdings whose import has enough without them.
    pub(super) fn dispensable(&self) -> ShortSet<BindingId> {
        let spare = |import: &Name| self.imports.get(import).is_none_or(ImportState::is_enough);
        let spared = self.recalled.iter().filter(|(import, _)| spare(import));
        spared.flat_map(|(_, bindings)| bindings.iter()).copied().collect()
    }

    /// What the component may use: all that is held and not recalled.
    fn usable(&self) -> Vec<HeldBinding> {
        let held = self.all.iter().filter(|(_, holding)| holding.state == HoldingState::Held);
        held.map(|(binding, holding)| HeldBinding {
            import: holding.import.clone(),
            binding: *binding,
            values: holding.values.clone(),
        })
        .collect()
    }

    /// Takes note of a new binding. A value is held as soon as it is known. `running`, here and below: whether the component is.
    pub(super) fn bind(&mut self, binding: BindingId, holding: Holding, running: bool) {
        let value = self.imports.get(&holding.import).is_some_and(|import| import.need.is_value());
        if let Knowledge::AtStart(told) = &mut self.knowledge
            && told.bind(&holding.import, &holding.values, true)
        {
            self.look_again(&holding.import);
        }
        self.all.insert(binding, holding);
        if value {
            self.put(binding, HoldingState::Held, running);
        }
    }

    /// Takes note of new values for a binding that is known.
    pub(super) fn bind_again(&mut self, binding: BindingId, values: &Values, running: bool) {
        let holding = self.all.get_mut(&binding).expect("only known holdings are bound again");
        let (import, held) = (holding.import.clone(), holding.state == HoldingState::Held);
        let before = std::mem::replace(&mut holding.values, values.clone());
        let Knowledge::AtStart(told) = &mut self.knowledge else { return };
        let mut turned = told.bind(&import, values, true);
        turned |= held && told.hold(binding, &import, values, true, running);
        turned |= held && told.hold(binding, &import, &before, false, running);
        turned |= told.bind(&import, &before, false);
        if turned {
            self.look_again(&import);
        }
    }

    /// Moves a holding that exists, and keeps the counts.
    pub(super) fn put(&mut self, binding: BindingId, state: HoldingState, running: bool) {
        let holding = self.all.get_mut(&binding).expect("only known holdings are moved");
        let before = std::mem::replace(&mut holding.state, state);
        let (import, held) = (holding.import.clone(), state == HoldingState::Held);
        match &mut self.knowledge {
            Knowledge::None => {}
            Knowledge::ByRebind(rebinding) => rebinding.put(binding, state, running),
            Knowledge::AtStart(told) => {
                if held != (before == HoldingState::Held) && told.hold(binding, &import, &holding.values, held, running)
                {
                    self.look_again(&import);
                }
            }
        }
        self.count(binding, &import, before, Some(state));
    }

    pub(super) fn remove(&mut self, binding: BindingId, running: bool) -> Option<Holding> {
        let holding = self.all.remove(&binding)?;
        match &mut self.knowledge {
            Knowledge::None => {}
            Knowledge::ByRebind(rebinding) => rebinding.forget(binding),
            Knowledge::AtStart(told) => {
                let held = holding.state == HoldingState::Held;
                let mut turned = held && told.hold(binding, &holding.import, &holding.values, false, running);
                turned |= told.bind(&holding.import, &holding.values, false);
                if turned {
                    self.look_again(&holding.import);
                }
            }
        }
        self.count(binding, &holding.import, holding.state, None);
        if !holding.reported {
            self.unreported.remove(&binding);
        }
        Some(holding)
    }

    /// A holding was lost with its provider's VM.
    pub(super) fn lose(&mut self, binding: BindingId, running: bool) {
        let Some(state) = self.all.get(&binding).map(Holding::state) else { return };
        if let Knowledge::ByRebind(rebinding) = &mut self.knowledge {
            rebinding.lose(binding, state, running);
        }
        let Some(holding) = self.remove(binding, running) else { return };
        if let Some(import) = self.imports.get_mut(&holding.import) {
            import.bereft |= running && !import.is_enough();
        }
    }

    /// Whether a binding may be one of a value. While the component is not yet known, any may.
    pub(super) fn may_be_value(&self, binding: BindingId) -> bool {
        let import = self.all.get(&binding).and_then(|holding| self.imports.get(&holding.import));
        import.is_none_or(|import| import.need.is_value())
    }

    /// Sets the number an import needs.
    pub(super) fn set_need(&mut self, import: &Name, number: u32) {
        if let Some(import) = self.imports.get_mut(import) {
            import.raise = None;
            if number > import.need.number() && number > import.held {
                import.raise = Some(number);
            } else {
                import.need = import.need.with_number(number);
            }
        }
    }

    fn count(&mut self, binding: BindingId, import: &Name, before: HoldingState, after: Option<HoldingState>) {
        match after {
            Some(HoldingState::Recalled { .. }) => _ = self.recalled.or_default(import).insert(binding),
            Some(HoldingState::Bound | HoldingState::Held) | None => {
                if let Some(recalled) = self.recalled.get_mut(import) {
                    recalled.remove(&binding);
                    if recalled.is_empty() {
                        self.recalled.remove(import);
                    }
                }
            }
        }
        let Some(import) = self.imports.get_mut(import) else { return };
        self.unreported.insert(binding);
        import.held -= u32::from(before == HoldingState::Held);
        import.held += u32::from(after == Some(HoldingState::Held));
        if let Some(raise) = import.raise.take_if(|raise| *raise <= import.held) {
            import.need = import.need.with_number(raise);
        }
    }
}
