//! The third party that pictures are shared with. It may hang, fail and lie: that affects its own
//! responses only.

mod breaker;
mod keeper;
mod response;
mod token;

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use greenroom::actor::{ActorRef, ActorSystem};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

use crate::Failure;
use crate::config::ShareSettings;
use crate::model::Id;
use crate::outbox::client;
use breaker::Breaker;
use keeper::{NoToken, TokenKeeper, TokenKeeperMessages, TokenReply};
use token::Provider;

/// The dispatcher of the actor.
const DISPATCHER: &str = "actors";
/// Retries if the third party cannot be reached, fails, or is late.
const RETRIES_MAX: usize = 2;
/// Delay before the first retry.
const RETRY_REST: Duration = Duration::from_millis(100);
/// Longest time of a share as a whole, in time-outs of one try.
const BOUND: u32 = 2;
/// The `Retry-After` if too many shares are in flight.
const OVERLOAD_RETRY: Duration = Duration::from_secs(1);

/// A client of the third party; cheap to clone.
#[derive(Clone, Debug)]
pub struct Share {
    client: Client,
    url: Url,
    timeout: Duration,
    permits: Arc<Semaphore>,
    breaker: Breaker,
    keeper: ActorRef<TokenKeeper>,
}

/// A picture to be shared.
struct Order<'a> {
    picture: Id,
    link: &'a Url,
    caption: &'a str,
    deadline: Instant,
}

/// The reason for which a try failed.
#[derive(Debug)]
enum TryError {
    TimedOut,
    Unreachable(String),
    Failed(StatusCode),
    /// The token was rejected.
    Unauthorized,
    Rejected(StatusCode),
    Invalid(String),
}

#[derive(Deserialize)]
struct Shared {
    url: Url,
}

impl Share {
    /// Starts the actor that keeps the token, on the system's dispatcher `actors`.
    ///
    /// # Errors
    /// If there is no such dispatcher, or the client for HTTP cannot be made.
    pub fn start(system: &ActorSystem, settings: &ShareSettings) -> anyhow::Result<Self> {
        let client = client().timeout(settings.timeout).build()?;
        let provider = Arc::new(Provider::new(settings, &client));
        let make = move || TokenKeeper::new(&provider);
        let keeper = system
            .build(make)
            .name("token-keeper")
            .dispatcher(DISPATCHER)
            .spawn()?;
        Ok(Self {
            client,
            url: settings.url.clone(),
            timeout: settings.timeout,
            permits: Arc::new(Semaphore::new(settings.concurrency_max)),
            breaker: Breaker::new(),
            keeper,
        })
    }

    /// Shares a picture that is found at `link`; returns its address at the third party. Takes
    /// twice the time-out of the settings at most.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if too many shares are in flight, the circuit breaker is open, or
    /// there is no token; [`Failure::UpstreamTimeout`] and [`Failure::BadUpstream`] if the third
    /// party is late, fails or lies.
    pub async fn share(&self, picture: Id, link: &Url, caption: &str) -> Result<Url, Failure> {
        let _permit = self
            .permits
            .try_acquire()
            .map_err(|_| unavailable(OVERLOAD_RETRY))?;
        let _pass = self.breaker.pass().map_err(unavailable)?;
        let order = Order {
            picture,
            link,
            caption,
            deadline: Instant::now() + self.timeout * BOUND,
        };
        let token = self.token(&order).await?;
        match self.persist(&order, &token).await {
            Err(TryError::Unauthorized) => {
                let token = self.other_token(&order, token).await?;
                Ok(self.persist(&order, &token).await?)
            }
            result => Ok(result?),
        }
    }

    async fn token(&self, order: &Order<'_>) -> Result<HeaderValue, Failure> {
        let asked = self.keeper.current().ask().timeout(order.left()).await;
        token_or_failure(asked)
    }

    async fn other_token(
        &self,
        order: &Order<'_>,
        rejected: HeaderValue,
    ) -> Result<HeaderValue, Failure> {
        let asked = self
            .keeper
            .replace(rejected)
            .ask()
            .timeout(order.left())
            .await;
        token_or_failure(asked)
    }

    /// Tries several times, as long as there is time and a retry may help.
    async fn persist(&self, order: &Order<'_>, token: &HeaderValue) -> Result<Url, TryError> {
        let rests = ExponentialBuilder::default()
            .with_min_delay(RETRY_REST)
            .with_max_times(RETRIES_MAX)
            .with_jitter();
        let attempt = || self.attempt(order, token);
        attempt
            .retry(rests)
            .when(|error| error.may_pass() && self.breaker.is_closed() && !order.left().is_zero())
            .await
    }

    async fn attempt(&self, order: &Order<'_>, token: &HeaderValue) -> Result<Url, TryError> {
        let result = self.post(order, token).await;
        self.breaker
            .record(!result.as_ref().is_err_and(TryError::is_failure));
        result
    }

    async fn post(&self, order: &Order<'_>, token: &HeaderValue) -> Result<Url, TryError> {
        let request = self
            .client
            .post(self.url.clone())
            .timeout(order.left().min(self.timeout))
            .header(AUTHORIZATION, token)
            .header("idempotency-key", order.picture.to_string())
            .json(&json!({"picture": order.link, "caption": order.caption}));
        let response = request.send().await.map_err(|error| classify(&error))?;
        read_url(response).await
    }
}

impl Order<'_> {
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

fn token_or_failure(
    asked: Result<TokenReply, greenroom::actor::AskError>,
) -> Result<HeaderValue, Failure> {
    match asked {
        Ok(Ok(token)) => Ok(token),
        Ok(Err(error)) => Err(error.into()),
        Err(error) => Err(Failure::Unavailable {
            what: "sharing",
            retry_after: OVERLOAD_RETRY,
            source: Some(Box::new(error)),
        }),
    }
}

async fn read_url(response: Response) -> Result<Url, TryError> {
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED {
        return Err(TryError::Unauthorized);
    }
    if status.is_server_error() {
        return Err(TryError::Failed(status));
    }
    if !status.is_success() {
        return Err(TryError::Rejected(status));
    }
    let body = response::read(response)
        .await
        .map_err(|error| invalid_or_timed_out(&error))?;
    let shared: Shared = serde_json::from_slice(&body)
        .map_err(|error| TryError::Invalid(format!("its response is not as agreed: {error}")))?;
    if ["http", "https"].contains(&shared.url.scheme()) {
        return Ok(shared.url);
    }
    Err(TryError::Invalid(
        "its response has a link that leads nowhere".to_owned(),
    ))
}

fn invalid_or_timed_out(error: &anyhow::Error) -> TryError {
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) => classify(error),
        None => TryError::Invalid(error.to_string()),
    }
}

fn classify(error: &reqwest::Error) -> TryError {
    if error.is_timeout() {
        return TryError::TimedOut;
    }
    let reason = if error.is_connect() {
        "it cannot be reached"
    } else {
        "its response broke off"
    };
    TryError::Unreachable(reason.to_owned())
}

impl TryError {
    /// True if a retry may succeed.
    fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::TimedOut | Self::Unreachable(_) | Self::Failed(_)
        )
    }

    /// True if it counts as a failure of the third party.
    fn is_failure(&self) -> bool {
        self.may_pass() || matches!(self, Self::Invalid(_))
    }
}

impl From<TryError> for Failure {
    fn from(error: TryError) -> Self {
        match error {
            TryError::TimedOut => Self::UpstreamTimeout,
            TryError::Unreachable(reason) | TryError::Invalid(reason) => Self::BadUpstream(reason),
            TryError::Failed(status) | TryError::Rejected(status) => {
                Self::BadUpstream(format!("it responded with {status}"))
            }
            TryError::Unauthorized => Self::BadUpstream("it does not take our token".to_owned()),
        }
    }
}

impl From<NoToken> for Failure {
    fn from(error: NoToken) -> Self {
        Self::Unavailable {
            what: "sharing",
            retry_after: error.retry_after,
            source: Some(Box::new(error)),
        }
    }
}

fn unavailable(retry_after: Duration) -> Failure {
    Failure::Unavailable {
        what: "sharing",
        retry_after,
        source: None,
    }
}
