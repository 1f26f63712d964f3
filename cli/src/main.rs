//! The program `holdfast`; all of it is in the library.

fn main() -> std::process::ExitCode {
    cli::main()
}
