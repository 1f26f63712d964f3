//! Submits a change to a manager and waits until it is done: what an operator's command does, and nothing else.
//!
//! ```text
//! ask ACCESS-FILE CHANGE-FILE
//! ```
//!
//! Prints the time from the request to the end of the change, without the start of this program.

use bench::site::{Outcome, ask};
use cloud_manager::access::Access;
use cloud_manager::client::Client;
use std::path::Path;
use std::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(access), Some(change)) = (arguments.next(), arguments.next()) else {
        return Err("usage: ask ACCESS-FILE CHANGE-FILE".into());
    };
    let client = Client::new(&Access::read(Path::new(&access))?)?;
    let change = serde_json::from_slice(&std::fs::read(change)?)?;
    let began = Instant::now();
    ask(&client, &change).await?;
    println!("took {:.4} s", began.elapsed().as_secs_f64());
    Ok(())
}
