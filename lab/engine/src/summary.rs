//! Measured figures within sentences and tables that are written by hand.

use std::collections::BTreeMap;

use crate::result::CaseOutcome;

/// Replaces each `{CASE CONTESTANT FIGURE}` by the median; `{wait loops load.p50_ms clients=10 .1}`
/// names parameters, and the number of decimals. What was not measured becomes `-`.
pub(crate) fn filled(text: &str, cases: &[CaseOutcome]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        out.push_str(before);
        let (reference, after) = from.split_once('}').unwrap_or((from, ""));
        out.push_str(&written(reference, cases).unwrap_or_else(|| "-".to_owned()));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn written(reference: &str, cases: &[CaseOutcome]) -> Option<String> {
    let mut words = reference.split_whitespace();
    let (name, contestant, figure) = (words.next()?, words.next()?, words.next()?);
    let mut parameters = BTreeMap::new();
    let mut decimals = 0;
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => drop(parameters.insert(name, value.parse::<f64>().ok()?)),
            None => decimals = word.strip_prefix('.')?.parse().ok()?,
        }
    }
    let mut named = cases.iter().filter(|one| one.name == name);
    let case = named.find(|one| {
        let mut wanted = parameters.iter();
        wanted.all(|(name, value)| one.parameters.get(*name) == Some(value))
    })?;
    let median = case.row(contestant)?.spread(figure)?.median;
    Some(format!("{median:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::result::Row;

    fn case(clients: f64, values: [f64; 3]) -> CaseOutcome {
        let sample = |value| Some(Figures::from([("load.p50_ms".to_owned(), value)]));
        CaseOutcome {
            name: "wait".to_owned(),
            parameters: BTreeMap::from([("clients".to_owned(), clients)]),
            rounds: 3,
            rows: vec![Row {
                contestant: "loop".to_owned(),
                label: "The loop".to_owned(),
                again: false,
                samples: values.map(sample).to_vec(),
                errors: Vec::new(),
                missing: None,
            }],
            goals: Vec::new(),
        }
    }

    #[test]
    fn references_become_medians() {
        let cases = [case(10.0, [3.0, 1.0, 2.0]), case(100.0, [9.0, 7.26, 6.0])];
        let text = "{wait loop load.p50_ms clients=10} of {wait loop load.p50_ms clients=100 .1}.";
        assert_eq!(filled(text, &cases), "2 of 7.3.");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let cases = [case(10.0, [3.0, 1.0, 2.0])];
        for reference in [
            "wait loop load.p50_ms clients=20",
            "wait pool load.p50_ms",
            "both loop load.p50_ms",
            "wait loop load.p99_ms",
            "wait",
        ] {
            assert_eq!(filled(&format!("{{{reference}}} ms"), &cases), "- ms");
        }
    }
}
