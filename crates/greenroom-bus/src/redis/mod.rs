//! The adaptor to Redis.

mod channel;
mod connection;
mod error;
mod link;
mod push;
mod servers;
mod settings;

use std::io;
use std::sync::Arc;

use crate::Pattern;
use crate::core::Core;
use crate::core::SubscribeError;
use crate::remote::{self, Remote, Server};

use channel::Names;
use link::Link;
pub use settings::RedisSettings;

/// The name of the thread that a bus through Redis runs on.
const THREAD_NAME: &str = "bus-redis";

/// State shared by the handles of a bus and its thread.
pub(crate) struct Redis {
    settings: RedisSettings,
    pub(crate) remote: Remote<Names>,
}

impl Redis {
    pub(crate) fn new(settings: RedisSettings) -> Self {
        let naming = Names {
            is_sharded: settings.is_sharded,
        };
        Self {
            remote: Remote::new(Server::Redis, settings.remote.clone(), naming),
            settings,
        }
    }

    /// Refuses patterns where the server has none.
    pub(crate) fn check(&self, pattern: &Pattern) -> Result<(), SubscribeError> {
        if self.settings.is_sharded && pattern.has_wildcard() {
            return Err(SubscribeError::PatternOnSharded(pattern.clone()));
        }
        Ok(())
    }
}

pub(crate) fn start(core: Arc<Core>, redis: Arc<Redis>) -> io::Result<()> {
    if redis.settings.servers.has_tls() {
        remote::choose_cryptography();
    }
    remote::start(
        THREAD_NAME,
        core,
        redis,
        |redis| &redis.remote,
        |runtime, core, redis| {
            let link = Link::new(Arc::clone(core), Arc::clone(redis));
            runtime.block_on(link.run())
        },
    )
}
