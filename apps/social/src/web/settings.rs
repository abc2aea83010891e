use askama::Template;
use axum::Form;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use url::Url;

use super::form::{Press, Trouble, id, see};
use super::render::{PageResult, page, page_with};
use super::shell::Shell;
use crate::api::parse_webhook;
use crate::auth::{Viewer, check_csrf};
use crate::model::{ApiKey, Id, TextError, User, UserChange};
use crate::service;
use crate::{App, Failure};

#[derive(Template)]
#[template(path = "pages/settings.html")]
struct SettingsPage {
    shell: Shell,
    saved: bool,
    trouble: Trouble,
    entered: Entered,
    push_key: Option<String>,
    keys: Vec<ApiKey>,
    made: Option<Made>,
}

/// A key that was just made: its secret is shown once.
struct Made {
    id: Id,
    secret: String,
}

/// The form of the settings. A box that is not checked is not sent.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Entered {
    csrf: String,
    display: String,
    about: String,
    webhook: String,
    digest: Option<bool>,
}

impl Entered {
    fn of(user: User) -> Self {
        Self {
            csrf: String::new(),
            display: user.display,
            about: user.about,
            webhook: user.webhook.map(String::from).unwrap_or_default(),
            digest: user.digest.then_some(true),
        }
    }

    fn change(&self) -> Result<UserChange, Failure> {
        Ok(UserChange {
            display: Some(self.display.clone()),
            about: Some(self.about.clone()),
            webhook: Some(webhook(self.webhook.trim())?),
            digest: Some(self.digest.is_some()),
            ..UserChange::default()
        })
    }
}

fn webhook(text: &str) -> Result<Option<Url>, TextError> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_webhook(text).map(Some)
}

/// The query that tells if the settings were just saved.
#[derive(Deserialize)]
pub(super) struct After {
    #[serde(default)]
    saved: bool,
}

pub(super) async fn show(
    State(app): State<App>,
    viewer: Viewer,
    Query(after): Query<After>,
) -> PageResult {
    page(&SettingsPage {
        saved: after.saved,
        ..load(&app, &viewer).await?
    })
}

async fn load(app: &App, viewer: &Viewer) -> Result<SettingsPage, Failure> {
    let user = app.store.user(viewer.author.id).await?;
    Ok(SettingsPage {
        shell: Shell::of(app, Some(viewer), "/settings").await?,
        saved: false,
        trouble: Trouble::default(),
        entered: Entered::of(user.ok_or(Failure::NotFound("user"))?),
        push_key: app.outbox.push_key().map(str::to_owned),
        keys: service::keys(app, viewer.author.id).await?,
        made: None,
    })
}

pub(super) async fn save(
    State(app): State<App>,
    viewer: Viewer,
    Form(entered): Form<Entered>,
) -> PageResult {
    check_csrf(&viewer, &entered.csrf)?;
    let saved = async { service::change_user(&app, viewer.author.id, entered.change()?).await };
    match saved.await {
        Ok(_) => Ok(see("/settings?saved=true")),
        Err(failure) => {
            let again = SettingsPage {
                trouble: Trouble::of(failure)?,
                entered,
                ..load(&app, &viewer).await?
            };
            page_with(again.trouble.status(), &again)
        }
    }
}

/// The form of a new key.
#[derive(Deserialize)]
pub(super) struct NewKey {
    csrf: String,
    name: String,
}

/// Responds with the page itself, not with a redirect: the secret is not kept where it could be
/// requested again.
pub(super) async fn make_key(
    State(app): State<App>,
    viewer: Viewer,
    Form(new): Form<NewKey>,
) -> PageResult {
    check_csrf(&viewer, &new.csrf)?;
    match service::create_key(&app, viewer.author.id, &new.name).await {
        Ok(key) => page(&SettingsPage {
            made: Some(Made {
                id: key.id,
                secret: hex::encode(&key.secret),
            }),
            ..load(&app, &viewer).await?
        }),
        Err(failure) => {
            let again = SettingsPage {
                trouble: Trouble::of(failure)?.about("name"),
                ..load(&app, &viewer).await?
            };
            page_with(again.trouble.status(), &again)
        }
    }
}

pub(super) async fn delete_key(
    State(app): State<App>,
    viewer: Viewer,
    Path(key): Path<String>,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    service::delete_key(&app, viewer.author.id, id(&key, "key")?).await?;
    Ok(see("/settings"))
}
