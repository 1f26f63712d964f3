//! Options for faults. The default is what the file says.

use clap::Args;
use model_check::Faults;

/// How many faults of each sort may happen.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Faults that may happen, at any moment (default: as in the file)")]
pub(crate) struct FaultOptions {
    /// Programs that crash and restart from their journals
    #[arg(long, value_name = "N")]
    crashes: Option<u32>,
    /// VMs that are lost, and declared lost at any later moment
    #[arg(long, value_name = "N")]
    losses: Option<u32>,
    /// Started components that die
    #[arg(long, value_name = "N")]
    deaths: Option<u32>,
    /// Operations that fail
    #[arg(long, value_name = "N")]
    failures: Option<u32>,
    /// Links that break and are re-established
    #[arg(long, value_name = "N")]
    breaks: Option<u32>,
}

impl FaultOptions {
    /// The faults in the file, overridden by the options.
    pub(crate) fn over(self, file: Faults) -> Faults {
        Faults {
            crashes: self.crashes.unwrap_or(file.crashes),
            losses: self.losses.unwrap_or(file.losses),
            deaths: self.deaths.unwrap_or(file.deaths),
            failures: self.failures.unwrap_or(file.failures),
            breaks: self.breaks.unwrap_or(file.breaks),
        }
    }

    /// The given options, to be pasted after a command.
    pub(crate) fn pasted(self) -> String {
        let given = [
            ("crashes", self.crashes),
            ("losses", self.losses),
            ("deaths", self.deaths),
            ("failures", self.failures),
            ("breaks", self.breaks),
        ];
        given.iter().filter_map(|(name, count)| count.map(|count| format!(" --{name} {count}"))).collect()
    }
}

/// Faults in words; `None` if there are none.
pub(crate) fn in_words(faults: Faults) -> Option<String> {
    let sorts = [
        (faults.crashes, "crash", "crashes"),
        (faults.losses, "lost VM", "lost VMs"),
        (faults.deaths, "death", "deaths"),
        (faults.failures, "failed operation", "failed operations"),
        (faults.breaks, "broken link", "broken links"),
    ];
    let words: Vec<String> = sorts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}
