//! What must hold of the wire for any bytes. One test in its own program, because the memory of the whole program is
//! measured: another test at the same time would count too.

mod any;

use peak_alloc::PeakAlloc;
use proptest::{collection, prelude::*};
use protocol::{Notice, Order, Report, Values, agent, bounds::MESSAGE_BYTES_MAX, manager, wire};
use serde::de::DeserializeOwned;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What bytes claim is believed up to the bound; beyond that, memory grows only with what has really arrived.
const BYTES_PER_BYTE_MAX: usize = 128;

#[test]
fn no_bytes_cause_a_panic_or_take_memory_beyond_the_limit() {
    proptest!(any::cases(4_000), |(bytes in collection::vec(any::<u8>(), 0..64))| check_memory(&bytes));
    proptest!(any::cases(4_000), |(bytes in plausible())| check_memory(&bytes));
    // Messages that were whole once and had one byte changed on the way.
    proptest!(any::cases(2_000), |(
        input in any::manager_input(), place in any::<proptest::sample::Index>(), byte in any::<u8>(),
    )| {
        let mut bytes = wire::encode(&input).expect("small messages can be encoded");
        let place = place.index(bytes.len());
        bytes[place] = byte;
        check_memory(&bytes);
    });
    // Twelve bytes that claim a huge length wherever a length can stand.
    for start in 0..12 {
        let mut bytes = [wire::VERSION; 12];
        bytes[start..].fill(0);
        bytes[start] = 253;
        bytes[11] = 127;
        check_memory(&bytes);
    }
    // The worst that really arrives: as many of the smallest things as fit.
    let mut facts = vec![wire::VERSION, 1, 252, 0, 0, 8, 0];
    facts.resize(MESSAGE_BYTES_MAX, 2);
    check_memory(&facts);
}

/// Decodes as `M`, whatever that gives, and returns the memory it took at its peak.
fn memory_of<M: DeserializeOwned>(bytes: &[u8]) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    drop(wire::decode::<M>(bytes));
    MEMORY.peak_usage() - before
}

type Measure = fn(&[u8]) -> usize;

fn check_memory(bytes: &[u8]) {
    let sorts: [(&str, Measure); 6] = [
        ("order", memory_of::<Order>),
        ("report", memory_of::<Report>),
        ("notice", memory_of::<Notice>),
        ("agent's input", memory_of::<agent::Input>),
        ("manager's input", memory_of::<manager::Input>),
        ("values", memory_of::<Values>),
    ];
    let allowed = 2 * MESSAGE_BYTES_MAX + BYTES_PER_BYTE_MAX * bytes.len();
    for (sort, measure) in sorts {
        let taken = measure(bytes);
        assert!(taken <= allowed, "{} bytes, read as {sort}, took {taken} bytes of memory", bytes.len());
    }
}

/// One byte after another that mostly look like small numbers, so that decoding gets far.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![8 => 0..16_u8, 1 => 250..=255_u8, 2 => any::<u8>()];
    collection::vec(byte, 0..200).prop_map(|mut bytes| {
        bytes.insert(0, wire::VERSION);
        bytes
    })
}
