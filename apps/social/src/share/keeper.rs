//! The actor that keeps a token of the third party fresh.

use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{Actor, BoxError, Context, ReplyTo, Timer, messages};
use reqwest::header::HeaderValue;
use tokio::time::Instant;

use super::token::{Provider, Token};

/// Longest use of a token, even if its provider allows more.
const RENEW_EVERY: Duration = Duration::from_mins(30);
/// The fraction of its lifetime after which a token is renewed.
const RENEW_AT: f64 = 0.8;
/// Age below which a rejected token is not renewed: then the token is not the cause.
const RENEW_MIN: Duration = Duration::from_secs(1);
/// Delay after the provider's first failure; each further delay is twice as long…
const REST_FIRST: Duration = Duration::from_secs(1);
/// … up to this.
const REST_LONGEST: Duration = Duration::from_mins(1);

/// An actor that asks the provider once for all callers, and before the old token expires.
pub(super) struct TokenKeeper {
    provider: Arc<Provider>,
    held: Option<Held>,
    waiting: Vec<ReplyTo<TokenReply>>,
    is_asking: bool,
    failures: u32,
    resting: Option<Rest>,
    renewal: Option<Timer>,
}

struct Held {
    token: Token,
    since: Instant,
}

struct Rest {
    until: Instant,
    reason: String,
}

/// The header `Authorization`, or the error that there is none.
pub(super) type TokenReply = Result<HeaderValue, NoToken>;

/// The error that there is no token.
#[derive(Clone, Debug, thiserror::Error)]
#[error("there is no token for the third party: {reason}")]
pub(super) struct NoToken {
    reason: String,
    /// Time until the provider is asked again.
    pub(super) retry_after: Duration,
}

impl Actor for TokenKeeper {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        context.every(RENEW_EVERY, Refresh {});
        self.refresh(context);
        Ok(())
    }
}

#[messages]
impl TokenKeeper {
    /// Replies with the token, as soon as there is one.
    #[message]
    pub(super) fn current(&mut self, reply: ReplyTo<TokenReply>, context: &mut Context<Self>) {
        if let Some(held) = self.held.as_ref().filter(|held| held.is_alive()) {
            reply.send(Ok(held.token.authorization.clone()));
        } else if let Some(rest) = &self.resting {
            reply.send(Err(rest.error()));
        } else {
            self.waiting.push(reply);
            self.ask(context);
        }
    }

    /// Replies with another token than this one, which was rejected.
    #[message]
    pub(super) fn replace(
        &mut self,
        rejected: HeaderValue,
        reply: ReplyTo<TokenReply>,
        context: &mut Context<Self>,
    ) {
        self.held = self
            .held
            .take()
            .filter(|held| held.is_worth_a_try(&rejected));
        self.current(reply, context);
    }

    #[message(derive(Clone))]
    fn refresh(&mut self, context: &mut Context<Self>) {
        self.resting = None;
        self.ask(context);
    }

    #[message]
    fn received(
        &mut self,
        asked_at: Instant,
        result: anyhow::Result<Token>,
        context: &mut Context<Self>,
    ) {
        self.is_asking = false;
        let outcome = match result {
            Ok(token) => Ok(self.keep(token, asked_at, context)),
            Err(error) => Err(self.rest(&error, context)),
        };
        for reply in self.waiting.drain(..) {
            reply.send(outcome.clone());
        }
    }
}

impl TokenKeeper {
    pub(super) fn new(provider: &Arc<Provider>) -> Self {
        Self {
            provider: Arc::clone(provider),
            held: None,
            waiting: Vec::new(),
            is_asking: false,
            failures: 0,
            resting: None,
            renewal: None,
        }
    }

    fn ask(&mut self, context: &mut Context<Self>) {
        if self.is_asking {
            return;
        }
        let (provider, asked_at) = (Arc::clone(&self.provider), Instant::now());
        let token = async move { provider.token().await };
        let received = move |result| Received { asked_at, result };
        self.is_asking = context.pipe(token, received).is_ok();
    }

    fn keep(&mut self, token: Token, since: Instant, context: &mut Context<Self>) -> HeaderValue {
        self.failures = 0;
        let authorization = token.authorization.clone();
        if let Some(life) = token.life.filter(|life| *life < RENEW_EVERY * 2) {
            self.refresh_at(since + life.mul_f64(RENEW_AT), context);
        }
        self.held = Some(Held { token, since });
        authorization
    }

    fn rest(&mut self, error: &anyhow::Error, context: &mut Context<Self>) -> NoToken {
        let rest = REST_FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(REST_LONGEST);
        self.failures = self.failures.saturating_add(1);
        let reason = format!("{error:#}");
        tracing::warn!(
            reason,
            ?rest,
            "the third party's provider gives no token; it is asked again"
        );
        let until = Instant::now() + rest;
        self.refresh_at(until, context);
        self.resting.insert(Rest { until, reason }).error()
    }

    fn refresh_at(&mut self, moment: Instant, context: &mut Context<Self>) {
        if let Some(timer) = self.renewal.replace(context.at(moment, Refresh {})) {
            timer.cancel();
        }
    }
}

impl Held {
    fn is_alive(&self) -> bool {
        self.token
            .life
            .is_none_or(|life| self.since.elapsed() < life)
    }

    fn is_worth_a_try(&self, rejected: &HeaderValue) -> bool {
        self.token.authorization != rejected || self.since.elapsed() < RENEW_MIN
    }
}

impl Rest {
    fn error(&self) -> NoToken {
        NoToken {
            reason: self.reason.clone(),
            retry_after: self.until.saturating_duration_since(Instant::now()),
        }
    }
}
