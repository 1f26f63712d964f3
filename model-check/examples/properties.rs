//! Prints the table property × mode, as `docs/PROPERTIES.md` has it.

fn main() {
    print!("{}", model_check::property::mode::page());
}
