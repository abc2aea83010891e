//! The first response of a server: nothing is measured that does not respond as declared.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use greenroom_load::plan::{End, Plan, StreamPlan, Target};
use greenroom_load::run::{Stop, run};

use crate::declare::Check;
use crate::words::Words;

const TIMEOUT: Duration = Duration::from_secs(20);
const EXCERPT_CHARACTERS: usize = 120;

/// Asks once, and compares the response with what was declared.
///
/// # Errors
/// If there is no response, or it differs.
pub(crate) fn check(check: &Check, words: &Words, stop: &Stop) -> anyhow::Result<()> {
    let path = words.fill(&check.path)?;
    let target: Target = words.fill(&format!("{{url}}{path}"))?.parse()?;
    let mut stream = StreamPlan::new(target);
    stream.end = End {
        requests: Some(1),
        duration: None,
    };
    stream.timeout = TIMEOUT;
    let plan = Plan {
        streams: vec![stream],
        interval: Duration::from_secs(1),
    };
    let mut measurement = run(&plan, None, stop, &mut |_| ())?;
    let stream = measurement.streams.swap_remove(0);
    let Some(first) = stream.first else {
        let failures = &stream.tally.failures;
        let kinds: Vec<_> = failures.iter().map(|(kind, _)| kind.to_string()).collect();
        bail!("GET {path} got no response: {}", kinds.join(", "));
    };
    let head = String::from_utf8_lossy(&first.head);
    let status: u16 = head
        .split(' ')
        .nth(1)
        .and_then(|one| one.parse().ok())
        .context("a status")?;
    let body = String::from_utf8_lossy(&first.body);
    let excerpt: String = body.chars().take(EXCERPT_CHARACTERS).collect();
    ensure!(
        status == check.status,
        "GET {path} got {status}, not {}: {excerpt:?}",
        check.status
    );
    let wanted = words.fill(&check.contains)?;
    ensure!(
        body.contains(wanted.trim()),
        "GET {path}: {wanted:?} is not in {excerpt:?}"
    );
    Ok(())
}
