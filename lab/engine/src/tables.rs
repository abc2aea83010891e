//! The table of a case, in Markdown.

use crate::declare::{Case, Column};
use crate::result::{CaseOutcome, Outcome, Row, Spread};

/// Writes the table: a row for each contestant and combination of parameters.
pub(crate) fn of_case(case: &Case, outcome: &Outcome) -> String {
    let parameters: Vec<&String> = case.over.keys().collect();
    let mut head = vec!["system".to_owned()];
    head.extend(parameters.iter().map(|name| (*name).clone()));
    for column in &case.columns {
        head.extend(heads(column));
    }
    let mut lines = vec![
        line(&head),
        line(&head.iter().map(|_| "---".to_owned()).collect::<Vec<_>>()),
    ];
    for done in outcome.cases.iter().filter(|one| one.name == case.name) {
        for row in &done.rows {
            let mut cells = vec![row.label.clone()];
            cells.extend(
                parameters
                    .iter()
                    .map(|name| done.parameters[*name].to_string()),
            );
            for column in &case.columns {
                cells.extend(self::cells(column, row, done));
            }
            lines.push(line(&cells));
        }
    }
    lines.join("\n")
}

fn heads(column: &Column) -> Vec<String> {
    let name = if column.label.is_empty() {
        &column.figure
    } else {
        &column.label
    };
    let mut heads = vec![name.clone()];
    heads.extend(column.beside.as_ref().map(|other| format!("x {other}")));
    heads.extend(column.minus.as_ref().map(|other| format!("less {other}'s")));
    heads.extend((!column.printed.is_empty()).then(|| "in the source".to_owned()));
    heads
}

fn cells(column: &Column, row: &Row, case: &CaseOutcome) -> Vec<String> {
    let spread = row.spread(&column.figure);
    let failed = row.missing.is_none() && row.samples.iter().all(Option::is_none);
    let text = match spread {
        Some(spread) => written(spread, column.decimals),
        None if failed => "failed".to_owned(),
        None => "-".to_owned(),
    };
    let mut cells = vec![text];
    if let Some(other) = &column.beside {
        let ratio = case
            .row(other)
            .and_then(|other| row.ratio(other, &column.figure));
        let is_same = *other == row.contestant && !row.again;
        cells.push(match ratio {
            Some(_) if is_same => "1".to_owned(),
            Some(ratio) => written(ratio, 2),
            None => "-".to_owned(),
        });
    }
    if let Some(other) = &column.minus {
        let other = case
            .row(other)
            .filter(|_| *other != row.contestant || row.again);
        let less = other.and_then(|other| row.difference(other, &column.figure));
        cells.push(less.map_or("-".to_owned(), |less| written(less, column.decimals)));
    }
    if !column.printed.is_empty() {
        cells.push(
            column
                .printed
                .get(&row.contestant)
                .cloned()
                .unwrap_or_default(),
        );
    }
    cells
}

/// Writes the median, and least and most where they differ from it.
fn written(spread: Spread, decimals: usize) -> String {
    let [median, least, most] =
        [spread.median, spread.least, spread.most].map(|value| format!("{value:.decimals$}"));
    if least == most {
        median
    } else {
        format!("{median} ({least}–{most})")
    }
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}
