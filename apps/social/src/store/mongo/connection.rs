//! The connection to the server.

use std::time::Duration;

use mongodb::Client;
use mongodb::options::{Acknowledgment, ClientOptions, WriteConcern};
use url::Url;

use super::fault::fault;
use super::tables::Tables;
use crate::store::{Result, StoreError};

/// Longest search for a server that is fit for an operation, and longest time to connect to it.
const REACH_MAX: Duration = Duration::from_secs(2);

/// Connections to each server, unless the URL says `maxPoolSize`.
const CONNECTIONS_MAX: u32 = 32;

/// Name of the database, unless the URL has another.
const DATABASE: &str = "social";

/// Longest time of an operation of the store with all its steps, unless the URL says `timeoutMS`.
const OPERATION_MAX: Duration = Duration::from_secs(5);

/// The option of the URL, in milliseconds, as drivers for other languages have it.
const OPERATION_MAX_OPTION: &str = "timeoutMS";

/// Opens the connection, without waiting for the server: the first operation does.
pub(super) async fn open(url: &Url) -> Result<Tables> {
    let (url, operation_max) = split(url)?;
    let mut options = ClientOptions::parse(url.as_str()).await.map_err(fault)?;
    options.server_selection_timeout = Some(REACH_MAX);
    options.connect_timeout = Some(REACH_MAX);
    options.max_pool_size.get_or_insert(CONNECTIONS_MAX);
    options.write_concern = Some(durable());
    let database = options.default_database.clone();
    let client = Client::with_options(options).map_err(fault)?;
    let database = client.database(database.as_deref().unwrap_or(DATABASE));
    Ok(Tables::new(&database, operation_max))
}

/// Returns the URL without the option, and the longest time of an operation.
fn split(url: &Url) -> Result<(Url, Duration)> {
    let mut operation_max = OPERATION_MAX;
    let mut rest = url.clone();
    rest.set_query(None);
    for (key, value) in url.query_pairs() {
        if key.eq_ignore_ascii_case(OPERATION_MAX_OPTION) {
            let refuse = |_| StoreError::broken(format!("{key}={value}: give milliseconds"));
            operation_max = Duration::from_millis(value.parse().map_err(refuse)?);
        } else {
            rest.query_pairs_mut().append_pair(&key, &value);
        }
    }
    Ok((rest, operation_max))
}

/// Returns the write concern: what is acknowledged survives the loss of a server, and of all
/// servers' memory.
fn durable() -> WriteConcern {
    WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true)
        .build()
}
