use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::{ENTITIES, Peer};

/// The time between two asks while an entity is away.
const TICK: Duration = Duration::from_millis(50);

/// Has the node of some entity killed, and asks until the entity is at another.
pub(crate) async fn recover<P: Peer>(peer: &P) -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let mut holders = HashSet::new();
    for id in 0_u64.. {
        holders.insert(peer.holder(format!("search{id}")).await?);
        if holders.len() == 2 {
            break;
        }
    }
    let id = format!("e{}", fastrand::u64(..ENTITIES));
    let killed = peer.holder(id.clone()).await?;
    println!("kill {killed}");
    let begin = Instant::now();
    let (found, mut elsewhere) = mpsc::unbounded_channel();
    for asks in 1_u32.. {
        let (peer, id, found) = (peer.clone(), id.clone(), found.clone());
        tokio::spawn(async move {
            let holder = peer.holder(id).await;
            if holder.is_ok_and(|holder| holder != killed) {
                // Another one came before it.
                let _ = found.send(());
            }
        });
        if timeout(TICK, elsewhere.recv()).await.is_ok() {
            let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
            let figures = [("recovery_ms", milliseconds), ("asks", asks.into())];
            return Ok(figures.into());
        }
    }
    Ok(BTreeMap::new())
}
