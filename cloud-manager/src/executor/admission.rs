//! Admission of agents: those that join with a token, those that renew their certificate, and those on this machine.

use super::{Executor, first_news};
use crate::machine::LocalEvent;
use protocol::manager::{Health, News, Request};
use protocol::{Change, Edit, Name, VmId};
use runtime::engine::Message;
use runtime::identity::{Grant, IdentityRequest, JoinRefusal};
use runtime::{Error, PeerId, Timestamp, VmName};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

impl Executor {
    /// Admits an agent on this machine without a token: writes its certificate into its data directory.
    pub(super) fn prepare(&mut self, vm: VmId, name: &Name) -> Result<(), Error> {
        let directory = self.local.identity_directory(vm)?;
        let name = VmName::parse(&name.to_string())?;
        self.authority.identity(&directory, PeerId(vm.0), &name, Timestamp::now())?;
        self.admitted.insert(vm);
        Ok(())
    }

    /// Answers an agent that asks to join or to renew its certificate.
    pub(super) async fn admit(&mut self, request: IdentityRequest) -> Result<Grant, Error> {
        let now = Timestamp::now();
        match request {
            IdentityRequest::Renew { certified, certificate_request } => {
                self.authority.renew(certified.peer, &certified.name, &certificate_request, now)
            }
            IdentityRequest::Join(request) => {
                let applicant = self.authority.examine(&request, now)?;
                let vm = match applicant.known {
                    Some(peer) => VmId(peer.0),
                    None => self.number_for(&applicant.name).await?,
                };
                let grant = self.authority.admit(&applicant, PeerId(vm.0), now)?;
                self.admitted.insert(vm);
                Ok(grant)
            }
        }
    }

    /// The number under which an agent with that name joins; a VM that is not in the book is added.
    async fn number_for(&self, name: &VmName) -> Result<VmId, Error> {
        let not_wanted = |why: &str| Error::from(JoinRefusal::NotWanted(why.to_owned()));
        let halting = || not_wanted("the manager is halting");
        let wanted = Name::new(name.as_str()).map_err(|error| not_wanted(&error.to_string()))?;
        let mut found = self.awaited(&wanted).await.ok_or_else(halting)?;
        if found.is_none() {
            let (answer, answered) = oneshot::channel::<Result<News, Error>>();
            let edits = vec![Edit::AddVm { vm: wanted.clone() }];
            let request = Request::Make(Change { edits, ..Change::default() });
            let about = format!("{wanted} joins");
            let asked = LocalEvent::AskedBy { by: "join token".into(), request, about, clouds: BTreeMap::new() };
            self.tell(Message::Happened(asked, Some(first_news(answer))));
            if let News::Refused(refusals) = answered.await.map_err(|_| halting())?? {
                let why = refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(not_wanted(&why));
            }
            found = self.awaited(&wanted).await.ok_or_else(halting)?;
        }
        match found {
            Some((Some(vm), Health::Awaited)) if !self.admitted.contains(&vm) => Ok(vm),
            Some((Some(_), _)) => Err(JoinRefusal::NameTaken(name.clone()).into()),
            _ => Err(not_wanted("a VM of that name waits for an earlier change (try again)")),
        }
    }

    /// The VM with that name in the book. The outer `None` means that the engine has stopped.
    async fn awaited(&self, name: &Name) -> Option<Option<(Option<VmId>, Health)>> {
        let name = name.clone();
        self.look(move |manager| manager.machine().book().vm(&name).map(|vm| (vm.id, vm.health))).await
    }
}
