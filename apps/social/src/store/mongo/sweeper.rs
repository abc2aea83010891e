//! Settles changes that crashed writers have abandoned.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::doc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::intents::Intent;
use super::tables::{Tables, delete, page};
use crate::store::{Result, StoreError};

/// Interval of reading the intents.
const EVERY: Duration = Duration::from_secs(1);

/// Grace time: an intent that is older than the longest operation by this much has no writer any
/// more.
const GRACE: Duration = Duration::from_secs(1);

/// Age at which a change that has not happened never will: no server holds a request for so long.
const VOID_AFTER: Duration = Duration::from_hours(1);

/// Intents that are read in one round.
const ROUND_MAX: u32 = 10_000;

/// A task on the runtime on which it was started, aborted when this is dropped.
#[derive(Debug)]
pub(super) struct Sweeper(AbortHandle);

impl Sweeper {
    pub(super) fn start(tables: Arc<Tables>) -> Self {
        Self(tokio::spawn(sweep(tables)).abort_handle())
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn sweep(tables: Arc<Tables>) {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = HashMap::new();
    let mut failed = false;
    loop {
        rounds.tick().await;
        let outcome = round(&tables, &mut seen).await;
        match &outcome {
            Err(error) if !failed => tracing::warn!(
                error = describe(error),
                "cannot look for unfinished changes"
            ),
            Ok(()) if failed => tracing::info!("unfinished changes are looked for again"),
            _ => {}
        }
        failed = outcome.is_err();
    }
}

fn describe(error: &StoreError) -> String {
    let source = error.source().map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

/// Settles old intents. Ages are measured from when an intent was first seen here: clocks of
/// replicas differ.
async fn round(tables: &Tables, seen: &mut HashMap<String, Instant>) -> Result<()> {
    let intents = tables
        .within(page(tables.intents.find(doc! {}), ROUND_MAX))
        .await?;
    let now = Instant::now();
    *seen = intents
        .iter()
        .map(|intent| {
            (
                intent.id.clone(),
                seen.get(&intent.id).copied().unwrap_or(now),
            )
        })
        .collect();
    let left_behind_after = tables.operation_max.saturating_add(GRACE);
    for intent in &intents {
        let age = now.duration_since(seen[&intent.id]);
        if age >= left_behind_after {
            settle_or_warn(tables, intent, age).await;
        }
    }
    Ok(())
}

/// Settles an intent. A failure is logged, and does not hold up the others.
async fn settle_or_warn(tables: &Tables, intent: &Intent, age: Duration) {
    if let Err(error) = tables.within(settle(tables, intent, age)).await {
        tracing::warn!(
            error = describe(&error),
            intent = intent.id,
            "cannot settle an unfinished change"
        );
    }
}

async fn settle(tables: &Tables, intent: &Intent, age: Duration) -> Result<()> {
    if tables.settle_left_behind(intent).await? {
        let (change, of) = (intent.change, intent.primary.as_str());
        tracing::info!(?change, of, "settled an unfinished change");
    } else if age >= VOID_AFTER {
        delete(&tables.intents, &intent.id).await?;
    }
    Ok(())
}
