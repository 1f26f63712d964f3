//! Times for display: in UTC, so that they agree with every log.

/// A moment, to the second: `2023-11-14 22:13:20`.
pub(crate) fn date_and_time(at_ms: u64) -> String {
    let (seconds, days) = (at_ms / 1_000 % 86_400, at_ms / 86_400_000);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// A moment as short as it can be understood now: the time of day, or the date if that was another day.
pub(crate) fn short(at_ms: u64, now_ms: u64) -> String {
    let text = date_and_time(at_ms);
    let (date, time) = text.split_at(10);
    if at_ms / 86_400_000 == now_ms / 86_400_000 { time.trim_start().into() } else { date.into() }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The time of day, to the tenth of a second: `22:13:20.4`.
pub(crate) fn time(at_ms: u64) -> String {
    let seconds = at_ms / 1_000 % 86_400;
    let tenths = at_ms % 1_000 / 100;
    format!("{:02}:{:02}:{:02}.{tenths}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Year, month and day of a day since 1970, in the Gregorian calendar. Years are counted from March, so that the leap day
/// is the last day of a year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // Day 0 is now 1 March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_follow_the_calendar() {
        assert_eq!(date_and_time(0), "1970-01-01 00:00:00");
        assert_eq!(date_and_time(1_700_000_000_000), "2023-11-14 22:13:20");
        assert_eq!(date_and_time(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(date_and_time(4_107_542_399_000), "2100-02-28 23:59:59");
        assert_eq!(date_and_time(4_107_542_400_000), "2100-03-01 00:00:00");
        assert_eq!(time(1_700_000_000_450), "22:13:20.4");
        assert_eq!(short(1_700_000_000_450, 1_700_000_001_000), "22:13:20");
        assert_eq!(short(1_700_000_000_450, 1_700_010_000_000), "2023-11-14");
    }
}
