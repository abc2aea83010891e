//! Numbers with their units, three digits of them.

/// Formats microseconds.
pub(super) fn micros(micros: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let exact = micros as f64;
    match micros {
        0 => "0".to_owned(),
        1..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", three_digits(exact / 1e3)),
        1_000_000..100_000_000 => format!("{} s", three_digits(exact / 1e6)),
        _ => seconds(micros / 1_000_000),
    }
}

/// Formats a number, with a space between groups of three digits.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            // So that a number is not broken over lines.
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

pub(super) fn len(number: usize) -> String {
    count(number as u64)
}

pub(super) fn bytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let exact = bytes as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", three_digits(exact / 1_024.0)),
        1_048_576..1_073_741_824 => format!("{} MiB", three_digits(exact / 1_048_576.0)),
        _ => format!("{} GiB", three_digits(exact / 1_073_741_824.0)),
    }
}

/// Formats a time of seconds up to days by its two largest units.
pub(super) fn seconds(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min {} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Formats a number that is drawn.
pub(super) fn drawn(value: f32) -> String {
    match value {
        _ if value < 0.05 => "0".to_owned(),
        _ if value < 1_000.0 && value.fract() < 0.005 => format!("{value:.0}"),
        _ if value < 1_000.0 => three_digits(f64::from(value)),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is positive, and no counter is that large"
        )]
        _ => count(value as u64),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        let times = [0, 999, 1_234, 12_340, 99_980, 1_500_000, 125_000_000];
        let shown = times.map(micros);
        let expected = [
            "0",
            "999 µs",
            "1.23 ms",
            "12.3 ms",
            "100 ms",
            "1.50 s",
            "2 min 5 s",
        ];
        assert_eq!(shown, expected);
        assert_eq!(count(1_234_567), "1\u{a0}234\u{a0}567");
        assert_eq!([bytes(512), bytes(1_536)], ["512 B", "1.50 KiB"]);
        assert_eq!([seconds(59), seconds(90_061)], ["59 s", "1 d 1 h"]);
        assert_eq!(
            [drawn(0.0), drawn(4.0), drawn(12.34), drawn(4_321.0)],
            ["0", "4", "12.3", "4\u{a0}321"]
        );
    }
}
