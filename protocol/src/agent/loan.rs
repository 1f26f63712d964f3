//! The provider's side of bindings.
//!
//! Think of a library. A book on the shelf (`Home`) may be lent; a book that is out (`Lent`) can be recalled; a recalled
//! one (`Recalled`) is waited for. The library closes only when every book is back on its shelf. A reading-room copy
//! (`Reference`) can be looked at by anyone, and the library does not wait for it.

use crate::{BindingId, ComponentId, Name, ShortMap, ShortSet, Ticket, VmId};
use serde::{Deserialize, Serialize};

/// Where a loan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LoanState {
    /// With the provider.
    Home,
    /// With the client.
    Lent,
    /// With the client, asked back; `last`: for good.
    Recalled {
        /// The client will forget the binding.
        last: bool,
    },
    /// Only values were handed out.
    Reference,
}

/// One binding, seen by its provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Loan {
    pub(super) client: ComponentId,
    pub(super) client_vm: VmId,
    pub(super) import: Name,
    pub(super) export: Name,
    pub(super) ticket: Ticket,
    state: LoanState,
    /// The edition of the values that the client was told, if any.
    pub(super) told: Option<u32>,
    /// The binding is removed.
    pub(super) removing: bool,
}

impl Loan {
    /// A new loan, at home; or a reference, if only values are wanted.
    pub(super) fn new(
        client: ComponentId,
        client_vm: VmId,
        import: Name,
        export: Name,
        value: bool,
        ticket: Ticket,
    ) -> Self {
        let state = if value { LoanState::Reference } else { LoanState::Home };
        Self { client, client_vm, import, export, ticket, state, told: None, removing: false }
    }

    /// The component that borrows.
    pub fn client(&self) -> ComponentId {
        self.client
    }

    /// The export that is lent.
    pub fn export(&self) -> &Name {
        &self.export
    }

    /// Where the client lives.
    pub fn client_vm(&self) -> VmId {
        self.client_vm
    }

    /// The edition of the provider's values that the client was told, if any.
    pub fn told(&self) -> Option<u32> {
        self.told
    }

    /// Whether the binding is removed.
    pub fn is_removing(&self) -> bool {
        self.removing
    }

    /// Where the loan is.
    pub fn state(&self) -> LoanState {
        self.state
    }

    /// Whether the provider must wait for it before it stops.
    pub fn is_out(&self) -> bool {
        match self.state {
            LoanState::Lent | LoanState::Recalled { .. } => true,
            LoanState::Home | LoanState::Reference => false,
        }
    }
}

/// All that one component lends, with an index of what the next move concerns: a step must not look at every loan.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Loans {
    all: ShortMap<BindingId, Loan>,
    home: ShortSet<BindingId>,
    lent: ShortSet<BindingId>,
    recalled: ShortSet<BindingId>,
    /// Those of them that are recalled for now, not for good.
    recalled_for_now: u32,
}

impl Loans {
    /// Every loan.
    pub fn iter(&self) -> impl Iterator<Item = (BindingId, &Loan)> {
        self.all.iter().map(|(binding, loan)| (*binding, loan))
    }

    /// One loan.
    pub fn get(&self, binding: BindingId) -> Option<&Loan> {
        self.all.get(&binding)
    }

    /// The loans at home, which go out when the provider is started.
    pub(super) fn home(&self) -> Vec<BindingId> {
        self.home.iter().copied().collect()
    }

    /// The loans that are out and not yet asked back.
    pub(super) fn lent(&self) -> Vec<BindingId> {
        self.lent.iter().copied().collect()
    }

    /// Whether the client was told of a loan.
    pub(super) fn is_told(&self, binding: BindingId) -> bool {
        self.all.get(&binding).is_some_and(|loan| loan.told.is_some())
    }

    /// Rule P4: a provider stops only when every loan is home.
    pub fn all_home(&self) -> bool {
        self.lent.is_empty() && self.recalled.is_empty()
    }

    /// Whether a loan is out that was recalled for now. Its client may stop and start again because of that.
    pub fn await_return(&self) -> bool {
        self.recalled_for_now > 0
    }

    pub(super) fn insert(&mut self, binding: BindingId, loan: Loan) {
        let state = loan.state;
        self.all.insert(binding, loan);
        self.index(binding, state);
    }

    pub(super) fn remove(&mut self, binding: BindingId) -> Option<Loan> {
        let loan = self.all.remove(&binding)?;
        self.unindex(binding, loan.state);
        Some(loan)
    }

    /// Everything about a loan but where it is; for that, see [`Loans::put`].
    pub(super) fn get_mut(&mut self, binding: BindingId) -> Option<&mut Loan> {
        self.all.get_mut(&binding)
    }

    /// Moves a loan that exists.
    pub(super) fn put(&mut self, binding: BindingId, state: LoanState) {
        let loan = self.all.get_mut(&binding).expect("only known loans are moved");
        let before = std::mem::replace(&mut loan.state, state);
        self.unindex(binding, before);
        self.index(binding, state);
    }

    fn index(&mut self, binding: BindingId, state: LoanState) {
        self.recalled_for_now += u32::from(state == LoanState::Recalled { last: false });
        match state {
            LoanState::Home => self.home.insert(binding),
            LoanState::Lent => self.lent.insert(binding),
            LoanState::Recalled { .. } => self.recalled.insert(binding),
            LoanState::Reference => true,
        };
    }

    fn unindex(&mut self, binding: BindingId, state: LoanState) {
        self.recalled_for_now -= u32::from(state == LoanState::Recalled { last: false });
        match state {
            LoanState::Home => self.home.remove(&binding),
            LoanState::Lent => self.lent.remove(&binding),
            LoanState::Recalled { .. } => self.recalled.remove(&binding),
            LoanState::Reference => true,
        };
    }
}
