//! A comparison as text.

use std::io;

use super::{Difference, Metric, Outcome, Ratio, SeriesSummary, Summary};

/// Significant digits of a median.
const DIGITS: i32 = 4;

/// Writes the medians of all servers, their ratios to the first one, the control, and remarks;
/// within 100 columns for names up to 12 characters.
///
/// # Errors
/// Those of `out`.
pub fn write_text(out: &mut dyn io::Write, outcome: &Outcome) -> io::Result<()> {
    let summary = outcome.summary();
    write_head(out, &summary)?;
    let Some((base, others)) = summary.series.split_first() else {
        return Ok(());
    };
    // The noise comes first: it says how the rest is to be read.
    let (controls, contenders): (Vec<_>, Vec<_>) =
        others.iter().partition(|series| series.is_control);
    for series in controls.into_iter().chain(contenders) {
        write_pair(out, base, series)?;
    }
    for remark in &summary.remarks {
        writeln!(out, "\n{remark}")?;
    }
    Ok(())
}

fn write_head(out: &mut dyn io::Write, summary: &Summary) -> io::Result<()> {
    let contenders = summary.series.iter().filter(|series| !series.is_control);
    let names: Vec<_> = contenders.map(|series| series.name.as_str()).collect();
    let cores = |cores: &Option<String>| cores.clone().unwrap_or_else(|| "any".into());
    writeln!(
        out,
        "{}: {} of {} rounds, server on cores {}, load on cores {}",
        names.join(", "),
        summary.rounds,
        summary.rounds_asked,
        cores(&summary.server_cores),
        cores(&summary.load_cores),
    )?;
    writeln!(
        out,
        "Medians of the rounds. Ratios are taken within each round; 95 % of their resampled \
        medians\nlie within the interval."
    )
}

fn write_pair(
    out: &mut dyn io::Write,
    base: &SeriesSummary,
    series: &SeriesSummary,
) -> io::Result<()> {
    let what = if series.is_control {
        " (the same server twice: the noise)"
    } else {
        ""
    };
    writeln!(out, "\n{} beside {}{what}", series.name, base.name)?;
    let width = [base, series].map(|one| one.name.chars().count().max(9));
    writeln!(
        out,
        "{:<22} {:>first$} {:>second$} {:>8}   95 % interval",
        "",
        base.name,
        series.name,
        "ratio",
        first = width[0],
        second = width[1],
    )?;
    for metric in Metric::ALL {
        let (one, other) = (&base.metrics[&metric], &series.metrics[&metric]);
        let row = format!(
            "{:<22} {:>first$} {:>second$} {}",
            metric.name(),
            number(one.median),
            number(other.median),
            other.ratio.map_or_else(String::new, compared),
            first = width[0],
            second = width[1],
        );
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}

fn compared(ratio: Ratio) -> String {
    let words = match ratio.difference {
        Difference::Seen => "",
        Difference::NotSeen => "no difference seen",
        Difference::TooFewRounds => "too few rounds",
    };
    let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
    format!("{:>8.3}   {interval:<16}  {words}", ratio.median)
}

/// Formats a value with four significant digits, but all that stand before the point.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number of digits after the point, from 0 to 6"
)]
fn number(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    let magnitude = value.abs().max(1e-3).log10().floor() as i32;
    let digits = (DIGITS - 1 - magnitude).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_that_count() {
        let told = [123_456.7, 1234.5, 12.345, 0.012_345, 0.0].map(|value| number(Some(value)));
        assert_eq!(told, ["123457", "1234", "12.35", "0.01235", "0.000000"]);
        assert_eq!(number(None), "-");
    }
}
