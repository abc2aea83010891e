//! Numbers and names as text.

use std::time::Duration;

/// Converts a count to a float.
#[expect(clippy::cast_precision_loss, reason = "a count of requests")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

/// Formats a count with its thousands apart.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number without needless zeros, its thousands apart; not below zero.
pub(super) fn number(value: f64, decimals: usize) -> String {
    let rounded = format!("{value:.decimals$}");
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    match fraction.trim_end_matches('0') {
        "" => whole,
        fraction => format!("{whole}.{fraction}"),
    }
}

/// Formats milliseconds, to about four digits.
pub(super) fn milliseconds(time: Duration) -> String {
    let value = time.as_secs_f64() * 1e3;
    let decimals = match value {
        ..10.0 => 3,
        10.0..100.0 => 2,
        100.0..1000.0 => 1,
        _ => 0,
    };
    let rounded = format!("{value:.decimals$}");
    match rounded.split_once('.') {
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => number(value, 0),
    }
}

/// Formats a rate per second, to a tenth below 1,000.
pub(super) fn rate(per_second: f64) -> String {
    number(per_second, usize::from(per_second < 1000.0))
}

/// Shortens a text to at most so many characters, with the middle left out: the ends of a URL tell
/// more than its middle.
pub(super) fn shortened(name: &str, characters_max: usize) -> String {
    let characters: Vec<_> = name.chars().collect();
    if characters.len() <= characters_max {
        return name.to_owned();
    }
    let kept = characters_max - 1;
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let head = &characters[..head];
    let tail = &characters[characters.len() - tail..];
    head.iter().chain(['…'].iter()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(number(5000.0, 6), "5,000");
        assert_eq!(number(0.3, 6), "0.3");
        assert_eq!(number(1_234_567.5, 1), "1,234,567.5");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(rate(0.96), "1");
        assert_eq!(rate(99.96), "100");
        assert_eq!(rate(100.04), "100");
    }

    #[test]
    fn milliseconds_have_four_digits() {
        assert_eq!(milliseconds(Duration::from_nanos(123_456)), "0.123");
        assert_eq!(milliseconds(Duration::from_micros(12_345)), "12.35");
        assert_eq!(milliseconds(Duration::from_millis(1_234_567)), "1,234,567");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("äbcdefghij", 5), "äb…ij");
    }
}
