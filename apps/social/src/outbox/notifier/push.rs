//! Notifications of browsers by Web Push (RFC 8030, 8291, 8292).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::AUTHORIZATION;
use reqwest::{Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use url::Url;
use web_push_native::p256::PublicKey;
use web_push_native::{Auth, WebPushBuilder};

use super::{Notice, Places, Vapid};
use crate::config::Settings;
use crate::model::{NewTask, Picture, PushSubscription, Task, TaskKind};
use crate::outbox::outside::{Outside, retry_after};
use crate::outbox::worker::{Doer, Setback, payload};
use crate::outbox::{Clock, links};
use crate::store::Store;

/// Longest time for one request to a push service.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a message is retried, and for which a push service keeps it for a browser that is
/// offline.
const KEEP_FOR: Duration = Duration::from_hours(24);
/// Characters of a caption; a message is at most 4 KiB (RFC 8030, section 7.2).
const CAPTION_MAX: usize = 200;

/// A worker that sends to each of a user's browsers.
pub(in crate::outbox) struct PushNotifier {
    store: Arc<dyn Store>,
    outside: Outside,
    vapid: Option<Arc<Vapid>>,
    base_url: Url,
    places: Places,
    clock: Clock,
}

/// A task as the service adds it, or, with an endpoint, one of those that it is split into.
#[derive(Deserialize, Serialize)]
struct PushTask {
    #[serde(flatten)]
    notice: Notice,
    #[serde(default)]
    endpoint: Option<Url>,
}

impl PushNotifier {
    pub(in crate::outbox) fn new(
        store: &Arc<dyn Store>,
        settings: &Settings,
        vapid: Option<Arc<Vapid>>,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            outside: Outside::new(settings.push.allow_private, TIMEOUT)?,
            vapid,
            base_url: settings.base_url(),
            places: Places::default(),
            clock: Arc::clone(clock),
        })
    }

    /// Adds one task for each browser, so that a failed message is sent again only to its own
    /// browser.
    async fn fan_out(&self, task: &Task, notice: &Notice) -> Result<(), Setback> {
        let browsers = self.store.pushes(notice.user).await?;
        let due = (self.clock)();
        let tasks = browsers.into_iter().map(|browser| NewTask {
            key: format!("{}:{}", task.key, name(&browser.endpoint)),
            kind: TaskKind::Push,
            payload: json!(PushTask {
                notice: notice.clone(),
                endpoint: Some(browser.endpoint),
            }),
            due,
        });
        Ok(self.store.add_tasks(tasks.collect()).await?)
    }

    async fn send(&self, notice: &Notice, endpoint: &Url) -> Result<(), Setback> {
        let Some(vapid) = &self.vapid else {
            return Err(Setback::permanent("there is no key for Web Push"));
        };
        let browsers = self.store.pushes(notice.user).await?;
        let browser = browsers
            .iter()
            .find(|browser| browser.endpoint == *endpoint);
        let picture = self.store.picture(notice.picture).await?;
        let (Some(browser), Some(picture)) = (browser, picture) else {
            return Ok(()); // no browser to notify, or nothing to notify of
        };
        if !self.is_logged_in(browser).await? {
            return Ok(self.store.delete_push(endpoint.as_str()).await?);
        }
        let request = request(browser, vapid, &self.text(notice, &picture))?;
        let response = self.outside.send(request).await?;
        self.judge(&response, endpoint).await
    }

    /// Returns `false` if the session of the browser has ended, be it that its time is up.
    async fn is_logged_in(&self, browser: &PushSubscription) -> Result<bool, Setback> {
        let Some(session) = &browser.session else {
            return Ok(true);
        };
        let live = self.store.live_session(session, (self.clock)()).await?;
        Ok(live.is_some())
    }

    fn text(&self, notice: &Notice, picture: &Picture) -> String {
        let caption: String = picture.caption.chars().take(CAPTION_MAX).collect();
        let page = links::picture(&self.base_url, picture.id);
        json!({"title": notice.title(), "body": caption, "url": page}).to_string()
    }

    async fn judge(&self, response: &Response, endpoint: &Url) -> Result<(), Setback> {
        let status = response.status();
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                Ok(self.store.delete_push(endpoint.as_str()).await?)
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(self.later(response))
            }
            _ if status.is_server_error() => Err(self.later(response)),
            _ => Err(Setback::Permanent(format!(
                "the push service responded with {status}"
            ))),
        }
    }

    fn later(&self, response: &Response) -> Setback {
        Setback::Temporary {
            error: format!("the push service responded with {}", response.status()),
            after: retry_after(response.headers(), (self.clock)()),
        }
    }
}

impl Doer for PushNotifier {
    const KIND: TaskKind = TaskKind::Push;

    fn give_up_after(&self) -> Option<Duration> {
        Some(KEEP_FOR)
    }

    async fn attempt(&self, task: &Task) -> Result<(), Setback> {
        let PushTask { notice, endpoint } = payload(task)?;
        match endpoint {
            Some(endpoint) => {
                let _place = self.places.take(notice.user)?;
                self.send(&notice, &endpoint).await
            }
            None => self.fan_out(task, &notice).await,
        }
    }
}

/// Returns a digest of an endpoint for a task's key: its address can be long, and is a secret.
fn name(endpoint: &Url) -> String {
    hex::encode(&Sha256::digest(endpoint.as_str())[..16])
}

fn request(browser: &PushSubscription, vapid: &Vapid, text: &str) -> Result<Request, Setback> {
    let endpoint = browser
        .endpoint
        .as_str()
        .parse()
        .map_err(Setback::permanent)?;
    let key = PublicKey::from_sec1_bytes(&bytes(&browser.p256dh)?).map_err(Setback::permanent)?;
    let secret = bytes(&browser.auth)?;
    if secret.len() != Auth::default().len() {
        return Err(Setback::permanent("the browser's secret has not 16 bytes"));
    }
    let builder = WebPushBuilder::new(endpoint, key, *Auth::from_slice(&secret))
        .with_valid_duration(KEEP_FOR);
    let mut request = builder.build(text).map_err(Setback::permanent)?;
    // The crate's own signature leaves out the port, which is part of an origin.
    let authorization = vapid.authorization(&browser.endpoint)?;
    request.headers_mut().insert(AUTHORIZATION, authorization);
    Request::try_from(request).map_err(Setback::permanent)
}

fn bytes(text: &str) -> Result<Vec<u8>, Setback> {
    URL_SAFE_NO_PAD
        .decode(text.trim_end_matches('='))
        .map_err(Setback::permanent)
}
