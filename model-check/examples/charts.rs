//! Draws the charts of the paper's figures into `docs/charts`.

use model_check::{Scenario, chart::Chart, run::run_in_turn};
use std::{error::Error, fs, path::Path};

const FIGURES: [(&str, &str); 3] = [
    ("figure-4", "figure-4-everything-goes-up"),
    ("figure-8", "figure-8-mysql-leaves"),
    ("figure-9", "figure-9-another-mysql-comes"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = here.join("../docs/charts");
    fs::create_dir_all(&folder)?;
    for (name, file) in FIGURES {
        let path = here.join("tests/scenarios").join(file).with_extension("txt");
        let scenario = Scenario::parse(file, &fs::read_to_string(path)?)?;
        let initial = scenario.world();
        let events = run_in_turn(&mut initial.clone());
        let chart = Chart::new(&initial, &events);
        fs::write(folder.join(name).with_extension("txt"), chart.to_text(140))?;
        fs::write(folder.join(name).with_extension("svg"), chart.to_svg())?;
    }
    Ok(())
}
