//! Calls through the handle: requests of operators, views of the manager, and questions to agents.

use super::{Executor, ExecutorMessage};
use crate::applications::state::Json;
use crate::document::asked::in_words;
use crate::handle::{Call, CallError};
use crate::machine::{Effect, LocalEvent, Manager, Wishes};
use protocol::letter::Question;
use protocol::manager::News;
use ractor::ActorRef;
use runtime::Timestamp;
use runtime::engine::{Message, Moment, Output, Reply};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long an operator waits for an agent's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl Executor {
    /// Carries out a call through the handle.
    pub(super) async fn answer(&mut self, myself: &ActorRef<ExecutorMessage>, call: Call) {
        match call {
            Call::Ask { by, request, clouds, wishes, answer } => {
                let about = in_words(&request);
                let event = with(LocalEvent::AskedBy { by, request, about, clouds }, wishes);
                self.tell(Message::Happened(event, Some(first_news(answer))));
            }
            Call::Submit { submission, wishes, answer } => {
                let reply = move |outputs: &[Output<Effect>]| {
                    let posted = outputs.iter().find_map(|output| match output {
                        Output::Effect(Effect::Submission(posted)) => Some(posted.clone()),
                        _ => None,
                    });
                    // If the caller is gone, its answer is dropped.
                    posted.map(|posted| answer.send(posted));
                };
                let event = with(LocalEvent::Submitted(submission), wishes);
                self.tell(Message::Happened(event, Some(Box::new(reply))));
            }
            Call::Rollout { application, first, promote, answer } => {
                let event = match promote {
                    true => LocalEvent::RolloutPromoted(application, first),
                    false => LocalEvent::RolloutCancelled(application, first),
                };
                self.tell(Message::Happened(
                    event,
                    Some(Box::new(move |_| {
                        // If the caller is gone, its answer is dropped.
                        let _ = answer.send(());
                    })),
                ));
            }
            Call::Look(look) => self.tell(Message::Look(Box::new(|manager: &Manager| look(manager.view())))),
            Call::EventsAfter { number, at_most, answer } => {
                let look = move |manager: &Manager| {
                    // If the caller is gone, its answer is dropped.
                    let _ = answer.send(manager.events_after(number).take(at_most).cloned().collect());
                };
                self.tell(Message::Look(Box::new(look)));
            }
            Call::Invite { vm, good_for_s, answer } => {
                let token = self.authority.invite(vm, good_for_s, Timestamp::now());
                let token = token.map(|token| token.to_string());
                let _ = answer.send(token.map_err(|error| CallError::Unavailable(error.to_string())));
            }
            Call::HostQuestion { vm, question, answer } => {
                let number = self.questions.last_key_value().map_or(Moment::now().0, |(last, _)| last + 1);
                self.questions.insert(number, answer);
                self.happened(LocalEvent::HostQuestion { number, vm, question });
                myself.send_after(ANSWER_TIMEOUT, move || ExecutorMessage::QuestionTimeout(number));
            }
            Call::Question { component, question, answer } => {
                // Numbers begin with the time, so that they differ from those before a restart.
                let number = self.questions.last_key_value().map_or(Moment::now().0, |(last, _)| last + 1);
                self.questions.insert(number, answer);
                let about = match question {
                    Question::Output { .. } => {
                        let name = component.clone();
                        self.look(move |manager| manager.component_with_output(&name)).await.flatten()
                    }
                    Question::Drift => None,
                };
                self.happened(match about {
                    Some(component) => LocalEvent::QuestionAbout { number, component, question },
                    None => LocalEvent::Question { number, component, question },
                });
                myself.send_after(ANSWER_TIMEOUT, move || ExecutorMessage::QuestionTimeout(number));
            }
        }
    }

    /// Reads the state of the manager between two steps; `None` if the engine has stopped.
    pub(super) async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Manager) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::Look(Box::new(move |manager: &Manager| drop(answer.send(look(manager))))));
        answered.await.ok()
    }
}

/// An event, with what is asked for together with it.
fn with(event: LocalEvent, wishes: Wishes) -> LocalEvent {
    if wishes.is_empty() { event } else { LocalEvent::With(Box::new(event), Json::new(wishes)) }
}

/// Answers with the machine's first news.
pub(super) fn first_news<E: Send + 'static>(answer: oneshot::Sender<Result<News, E>>) -> Reply<Manager> {
    Box::new(move |outputs| {
        let news = outputs.iter().find_map(|output| match output {
            Output::Effect(Effect::Event(event)) => Some(event.news.clone()),
            _ => None,
        });
        if let Some(news) = news {
            // If the caller is gone, the answer is dropped; the request is carried out all the same.
            let _ = answer.send(Ok(news));
        }
    })
}
