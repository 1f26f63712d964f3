//! A run as a list of choices: at each step, the place of what happened in the sorted list of what could have.
//!
//! Short enough to be pasted after a command, where a trace needs a file. It means something only together with the
//! script and the faults that were allowed.

use crate::{Action, World};
use std::{fmt, str::FromStr};

/// What was chosen at each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(Vec<usize>);

/// Why a list of choices is none, or does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// Something in the list is no number.
    #[error("{0:?} is no choice (a list of choices looks like 0.0.2.1)")]
    Malformed(String),
    /// There are not as many things to choose from.
    #[error(
        "choice {step} is {choice}, but only {possible} things are possible there (the scenario or the faults differ)"
    )]
    OutOfReach {
        /// Which one, from 1.
        step: usize,
        /// What it says.
        choice: usize,
        /// How many there are.
        possible: usize,
    },
}

impl Choices {
    /// The choices that lead from a world over these actions. Ends at the first that is not possible.
    pub fn of(mut world: World, actions: &[Action]) -> Self {
        let place = |action: &Action| {
            let place = world.actions().binary_search(action).ok();
            world.apply(*action);
            place
        };
        Self(actions.iter().map_while(place).collect())
    }

    /// The actions that were chosen.
    pub fn actions(&self, mut world: World) -> Result<Vec<Action>, ChoiceError> {
        let choose = |(index, choice): (usize, &usize)| {
            let possible = world.actions();
            let out_of_reach = ChoiceError::OutOfReach { step: index + 1, choice: *choice, possible: possible.len() };
            let action = *possible.get(*choice).ok_or(out_of_reach)?;
            world.apply(action);
            Ok(action)
        };
        self.0.iter().enumerate().map(choose).collect()
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&words.join("."))
    }
}

impl FromStr for Choices {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let choice = |word: &str| word.parse().map_err(|_| ChoiceError::Malformed(word.into()));
        text.split('.').map(choice).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        run::run_in_turn,
        scenario::shapes::{Course, running_example},
    };

    #[test]
    fn choices_lead_to_the_same_actions_again() {
        let scenario = running_example(Course::UpDownUp);
        let actions: Vec<Action> = run_in_turn(&mut scenario.world()).iter().map(|event| event.action).collect();
        let choices: Choices = Choices::of(scenario.world(), &actions).to_string().parse().unwrap();
        assert_eq!(choices.actions(scenario.world()), Ok(actions));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let world = running_example(Course::Up).world();
        assert_eq!("0.x".parse::<Choices>(), Err(ChoiceError::Malformed("x".into())));
        let far = Choices(vec![0, 99]).actions(world);
        assert!(matches!(far, Err(ChoiceError::OutOfReach { step: 2, choice: 99, .. })));
    }
}
