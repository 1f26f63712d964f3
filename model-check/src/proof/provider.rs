//! The provider's side of one binding, with everything else of the provider chosen freely.
//!
//! What the rules P1 to P7 make of one loan depends on a few facts about its provider: whether it is started, whether it is
//! removed, whether it has announced its values. Here the surroundings choose these facts whenever the rules let them: a
//! provider may stop at any time at which *this* loan is home, whatever its other loans do. So each step of a real agent, seen
//! from one loan, is a sequence of the moves here.

use protocol::agent::LoanState;

/// What the client was told of the provider's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Told {
    /// Nothing.
    Never,
    /// The values before some later start.
    Outdated,
    /// The values of today.
    Present,
}

/// Whether the provider runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    /// Neither started nor about to be.
    Down,
    /// Its start is under way.
    Starting,
    /// It is started.
    Started,
    /// It ended by itself, and has not started again.
    Died,
}

/// One loan, and what matters of its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lender {
    /// Where the loan is.
    pub state: LoanState,
    /// What the client was told.
    pub told: Told,
    /// The binding is removed.
    pub removing: bool,
    /// Whether the provider runs.
    pub life: Life,
    /// The provider is removed.
    pub leaving: bool,
    /// The provider has announced its values.
    pub announced: bool,
}

impl Lender {
    /// Whether the provider waits for the loan.
    pub fn is_out(self) -> bool {
        matches!(self.state, LoanState::Lent | LoanState::Recalled { .. })
    }
}

/// The provider's side of one binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// The binding is not ordered yet.
    Unordered,
    /// The loan exists.
    Lends(Lender),
    /// The loan existed and is dropped, or was never made.
    Dropped,
    /// The provider's VM is lost.
    Lost,
}

/// A notice to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToClient {
    /// The address.
    Bind,
    /// The loan.
    Started,
    /// Asked back; `last`: for good.
    Recall {
        /// The client is to forget the binding.
        last: bool,
    },
}

/// What one move leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The provider's side after it.
    pub provider: Provider,
    /// What the client is told.
    pub said: Vec<ToClient>,
    /// Whether the provider's values may have changed.
    pub renewed: bool,
}

fn moved(provider: Provider, said: &[ToClient]) -> Moved {
    Moved { provider, said: said.to_vec(), renewed: false }
}

/// Everything that the provider's side may do without hearing from the client. `value`: the client only needs values.
/// `forgot`: the client's VM is forgotten.
pub fn moves(provider: Provider, value: bool, forgot: bool) -> Vec<Moved> {
    match provider {
        Provider::Unordered => {
            let mut found = vec![moved(Provider::Dropped, &[])];
            if !forgot {
                found.extend(new_loans(value).map(|loan| moved(Provider::Lends(loan), &[])));
            }
            found
        }
        Provider::Lends(loan) => moves_of(loan),
        Provider::Dropped | Provider::Lost => Vec::new(),
    }
}

/// A new loan of any provider.
fn new_loans(value: bool) -> impl Iterator<Item = Lender> {
    let state = if value { LoanState::Reference } else { LoanState::Home };
    let lives = [Life::Down, Life::Starting, Life::Started, Life::Died];
    let all = lives.into_iter().flat_map(|life| [false, true].map(|leaving| (life, leaving)));
    let all = all.flat_map(|(life, leaving)| [false, true].map(|announced| (life, leaving, announced)));
    // What has begun to start has announced its values.
    all.filter(|(life, _, announced)| *announced || *life == Life::Down).map(move |(life, leaving, announced)| Lender {
        state,
        told: Told::Never,
        removing: false,
        life,
        leaving,
        announced,
    })
}

fn moves_of(loan: Lender) -> Vec<Moved> {
    let mut found = Vec::new();
    let mut add = |loan: Lender, said: &[ToClient]| found.push(moved(Provider::Lends(loan), said));
    let (home, lent) = (loan.state == LoanState::Home, loan.state == LoanState::Lent);
    let reference = loan.state == LoanState::Reference;
    // Prepared: the values are announced.
    if !loan.announced && loan.life == Life::Down {
        add(Lender { announced: true, ..loan }, &[]);
    }
    // P1: the first word about a binding.
    if loan.announced && loan.told == Told::Never && (home || reference) && !loan.removing {
        add(Lender { told: Told::Present, ..loan }, &[ToClient::Bind]);
    }
    // C1: a start begins only when every loan is home, and ends in either way.
    if matches!(loan.life, Life::Down | Life::Died) && loan.announced && !loan.is_out() && !loan.leaving {
        add(Lender { life: Life::Starting, ..loan }, &[]);
    }
    if loan.life == Life::Starting {
        add(Lender { life: Life::Down, ..loan }, &[]);
        add(Lender { life: Life::Started, ..loan }, &[]);
    }
    // P2: what is at home goes out, with the address before it.
    if loan.life == Life::Started && home && !loan.leaving {
        let lent = Lender { state: LoanState::Lent, told: Told::Present, ..loan };
        let said = [ToClient::Bind, ToClient::Started];
        add(lent, if loan.told == Told::Present { &said[1..] } else { &said });
    }
    // P3: what is out is recalled, once; by one that is removed for good, and also what is at home and was told of.
    let recalled = Lender { state: LoanState::Recalled { last: loan.leaving }, ..loan };
    let told_of = home && loan.told != Told::Never && loan.leaving && loan.life != Life::Starting;
    if lent && matches!(loan.life, Life::Started | Life::Died) || told_of {
        add(recalled, &[ToClient::Recall { last: loan.leaving }]);
    }
    // P4: it stops only when every loan is home.
    if loan.life == Life::Started && !loan.is_out() {
        add(Lender { life: Life::Down, ..loan }, &[]);
    }
    if loan.life == Life::Started {
        add(Lender { life: Life::Died, ..loan }, &[]);
    }
    if !loan.leaving {
        add(Lender { leaving: true, ..loan }, &[]);
    }
    // P5: the binding is removed.
    if !loan.removing {
        let removing = Lender { removing: true, ..loan };
        match loan.state {
            LoanState::Home | LoanState::Reference if loan.told == Told::Never => {}
            LoanState::Home | LoanState::Lent => {
                add(
                    Lender { state: LoanState::Recalled { last: true }, ..removing },
                    &[ToClient::Recall { last: true }],
                );
            }
            LoanState::Reference => add(removing, &[ToClient::Recall { last: true }]),
            LoanState::Recalled { .. } => add(removing, &[]),
        }
    }
    if !loan.removing && (home || reference) && loan.told == Told::Never {
        found.push(moved(Provider::Dropped, &[]));
    }
    // P7: it leaves, and tells those that only know its values.
    if loan.leaving && matches!(loan.life, Life::Down | Life::Died) && !loan.is_out() {
        match loan.told {
            Told::Never => found.push(moved(Provider::Dropped, &[])),
            Told::Outdated | Told::Present if reference => {
                found.push(moved(Provider::Dropped, &[ToClient::Recall { last: true }]));
            }
            Told::Outdated | Told::Present => {}
        }
    }
    // A start may choose other values: what the client was told is outdated then.
    if loan.life == Life::Starting {
        let told = if loan.told == Told::Never { Told::Never } else { Told::Outdated };
        let provider = Provider::Lends(Lender { life: Life::Started, told, ..loan });
        found.push(Moved { provider, said: Vec::new(), renewed: true });
    }
    found
}

/// P6: what the provider's side makes of a confirmation.
pub fn hear(provider: Provider, forgot: bool, last: bool) -> Moved {
    let Provider::Lends(loan) = provider else { return moved(provider, &[]) };
    match (last, loan.state) {
        _ if forgot => moved(provider, &[]),
        (true, _) => moved(Provider::Dropped, &[]),
        (false, LoanState::Recalled { .. }) if loan.removing || loan.leaving => {
            let again = Lender { state: LoanState::Recalled { last: true }, ..loan };
            moved(Provider::Lends(again), &[ToClient::Recall { last: true }])
        }
        (false, LoanState::Recalled { .. }) => moved(Provider::Lends(Lender { state: LoanState::Home, ..loan }), &[]),
        (false, LoanState::Home | LoanState::Lent | LoanState::Reference) => moved(provider, &[]),
    }
}

/// M7: the client's VM is forgotten. What is not ordered yet will not be made.
pub fn forget(provider: Provider) -> Provider {
    match provider {
        Provider::Lends(_) => Provider::Dropped,
        Provider::Unordered | Provider::Dropped | Provider::Lost => provider,
    }
}
