//! Today's date, for records.

use std::time::SystemTime;

/// The date in UTC, year-month-day.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Days since 0000-03-01: if a year begins in March, the leap day is its last.
    let days = since.as_secs() / 86400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let year = 400 * era + year + u64::from(month >= 10);
    format!("{year}-{:02}-{:02}", (month + 2) % 12 + 1, day - (153 * month + 2) / 5 + 1)
}
