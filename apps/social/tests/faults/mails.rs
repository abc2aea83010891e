//! The check that each mail came.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::kit::smtp::SmtpSink;

/// Longest way of a mail: the delays between tries grow.
const PATIENCE: Duration = Duration::from_mins(3);

/// Waits until each user has their welcome; duplicates must be the same mail.
pub(crate) async fn check(sink: &SmtpSink, names: impl Iterator<Item = &String>) {
    let wanted: BTreeSet<String> = names.map(|name| format!("{name}@example.org")).collect();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let mut mails: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for mail in sink.mails() {
            for to in mail.to {
                let id = mail.headers["message-id"].clone();
                mails.entry(to).or_default().insert(id);
            }
        }
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|to| !mails.contains_key(*to))
            .collect();
        if missing.is_empty() {
            let doubled: Vec<_> = mails.iter().filter(|(_, ids)| ids.len() > 1).collect();
            assert!(doubled.is_empty(), "two different mails: {doubled:?}");
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "no mail for {missing:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
