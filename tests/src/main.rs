//! The program that these tests run: `holdfast`, built for this crate so that cargo never runs a stale one.

fn main() -> std::process::ExitCode {
    cli::main()
}
