//! Questions of operators that only an agent can answer, on their way to it.

use super::{Effect, Manager, Outputs, send};
use protocol::letter::{Question, ToAgent};
use protocol::{ComponentId, Name};
use runtime::engine::Output;

impl Manager {
    pub(super) fn forward_question(&self, number: u64, component: ComponentId, question: Question) -> Outputs {
        let book = self.books.manager.book();
        match book.component_by_id(component).and_then(|it| book.vm_of(it).id) {
            Some(vm) => vec![send(vm, &ToAgent::Ask { number, component, question })],
            None => {
                let answer = Err("the component no longer exists".into());
                vec![Output::Effect(Effect::Answer { number, answer })]
            }
        }
    }

    pub(super) fn forward_question_by_name(&self, number: u64, component: &Name, question: Question) -> Outputs {
        let refuse = |why: String| vec![Output::Effect(Effect::Answer { number, answer: Err(why) })];
        let book = self.books.manager.book();
        let Some(entry) = book.component(component) else {
            return refuse(format!("there is no component {component}"));
        };
        match (book.vm_of(entry).id, entry.id) {
            (Some(vm), Some(component)) => {
                vec![send(vm, &ToAgent::Ask { number, component, question })]
            }
            _ => refuse(format!("component {component} waits for its phase and has not run yet")),
        }
    }
}
