//! What must hold of the wire for any message.

mod any;

use proptest::prelude::*;
use protocol::wire;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

#[test]
fn every_message_comes_back_as_it_was() {
    proptest!(any::cases(500), |(
        order in any::order(),
        report in any::report(),
        notice in any::notice(),
        agent in any::agent_input(),
        manager in any::manager_input(),
    )| {
        check(&order)?;
        check(&report)?;
        check(&notice)?;
        check(&agent)?;
        check(&manager)?;
    });
}

fn check<M: Serialize + DeserializeOwned + PartialEq + Debug>(message: &M) -> Result<(), TestCaseError> {
    let bytes = wire::encode(message).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let decoded: M = wire::decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&decoded, message);
    // Nothing shorter and nothing longer is the same message.
    prop_assert!(wire::decode::<M>(&bytes[..bytes.len() - 1]).is_err());
    prop_assert!(wire::decode::<M>(&[&bytes[..], &[0]].concat()).is_err());
    Ok(())
}
