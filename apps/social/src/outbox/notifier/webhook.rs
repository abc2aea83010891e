//! Notifications of users' programs by a webhook.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Method, Request, StatusCode};
use serde_json::json;
use url::Url;

use super::{Notice, Places};
use crate::config::Settings;
use crate::model::{Task, TaskKind};
use crate::outbox::links;
use crate::outbox::outside::Outside;
use crate::outbox::worker::{Doer, Setback, payload};
use crate::store::Store;

/// Time after which a notification is given up.
const GIVE_UP_AFTER: Duration = Duration::from_hours(24);

/// A worker that posts to the address that a user has set.
pub(in crate::outbox) struct WebhookNotifier {
    store: Arc<dyn Store>,
    outside: Outside,
    base_url: Url,
    places: Places,
}

impl WebhookNotifier {
    pub(in crate::outbox) fn new(
        store: &Arc<dyn Store>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            outside: Outside::new(settings.webhook.allow_private, settings.webhook.timeout)?,
            base_url: settings.base_url(),
            places: Places::default(),
        })
    }

    /// Builds the request. `id` is the same at each try, so that the receiver can recognise a
    /// repetition.
    fn request(&self, task: &Task, notice: &Notice, webhook: Url) -> Request {
        let text = json!({
            "id": task.key,
            "kind": notice.kind,
            "by": notice.by,
            "picture": notice.picture,
            "url": links::picture(&self.base_url, notice.picture),
            "at": task.added_at,
        });
        let mut request = Request::new(Method::POST, webhook);
        let json = const { reqwest::header::HeaderValue::from_static("application/json") };
        request.headers_mut().insert(CONTENT_TYPE, json);
        *request.body_mut() = Some(Body::from(text.to_string()));
        request
    }
}

impl Doer for WebhookNotifier {
    const KIND: TaskKind = TaskKind::Webhook;

    fn give_up_after(&self) -> Option<Duration> {
        Some(GIVE_UP_AFTER)
    }

    async fn attempt(&self, task: &Task) -> Result<(), Setback> {
        let notice: Notice = payload(task)?;
        let _place = self.places.take(notice.user)?;
        let user = self.store.user(notice.user).await?;
        let Some(webhook) = user.and_then(|user| user.webhook) else {
            return Ok(()); // the webhook was removed meanwhile
        };
        let response = self
            .outside
            .send(self.request(task, &notice, webhook))
            .await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(Setback::permanent("the webhook is gone (410)")),
            status => Err(Setback::Temporary {
                error: format!("the webhook responded with {status}"),
                after: None,
            }),
        }
    }
}
