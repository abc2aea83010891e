//! The JSON API, as a program uses it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use reqwest::header::{COOKIE, RETRY_AFTER, SET_COOKIE};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

const PASSWORD: &str = "greenroom-bench";
const CSRF_FIELD: &str = "x-csrf-token";
/// Longest time of a request: that of a large picture waits for others.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Pictures of one request, as many as are allowed.
const PICTURES_A_REQUEST: usize = 10;
/// Concurrent uploads while pictures are prepared.
const UPLOADS_AT_ONCE: usize = 4;
/// Most attempts at a rejected request while data is prepared.
const ATTEMPTS_MAX: usize = 20;
/// Pause before another attempt where the response names none.
const REST: Duration = Duration::from_millis(200);

/// A client of one address.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    origin: String,
}

/// A user who is logged in.
#[derive(Clone, Debug)]
pub(crate) struct User {
    client: Client,
    /// The cookie, such as `session=…`.
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

/// The result of a like.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Like {
    /// The place of this change in the topic of the picture's likes.
    pub(crate) likes_seq: u64,
}

#[derive(Deserialize)]
struct Session {
    csrf: String,
}

#[derive(Deserialize)]
struct WithId {
    id: String,
}

/// The part of a picture's page on its likes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Liked {
    pub(crate) likes: u64,
}

impl Client {
    /// Makes a client of `http://ADDRESS`.
    pub(crate) fn new(origin: impl Into<String>) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        let origin = origin.into();
        Ok(Self { http, origin })
    }

    /// Signs up and logs in a new user.
    pub(crate) async fn sign_up(&self, name: &str) -> anyhow::Result<User> {
        let user =
            json!({ "name": name, "email": format!("{name}@example.org"), "password": PASSWORD });
        let request = || self.request(Method::POST, "/api/users").json(&user);
        persist(request).await.context("sign-up")?;
        self.log_in(name).await
    }

    /// Logs in a user that has signed up before, perhaps at another replica.
    pub(crate) async fn log_in(&self, name: &str) -> anyhow::Result<User> {
        let credentials = json!({ "name": name, "password": PASSWORD });
        let request = || {
            self.request(Method::POST, "/api/sessions")
                .json(&credentials)
        };
        let response = persist(request).await.context("log-in")?;
        let cookies = response.headers().get_all(SET_COOKIE).iter();
        let cookie = cookies
            .filter_map(|cookie| cookie.to_str().ok()?.split(';').next())
            .find(|cookie| cookie.starts_with("session="))
            .context("the log-in's response has no cookie `session`")?
            .to_owned();
        let session: Session = response.json().await.context("the log-in's response")?;
        Ok(User {
            client: self.clone(),
            cookie,
            csrf: session.csrf,
        })
    }

    /// Returns the number of likes of a picture.
    pub(crate) async fn likes(&self, picture: &str) -> anyhow::Result<u64> {
        let request = || self.request(Method::GET, &format!("/api/pictures/{picture}"));
        let liked: Liked = persist(request).await?.json().await?;
        Ok(liked.likes)
    }

    /// Reads one response to `GET` to its end.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<()> {
        let response = self.request(Method::GET, path).send().await?;
        let status = response.status();
        response.bytes().await?;
        ensure!(status.is_success(), "GET {path}: {status}");
        Ok(())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.origin))
    }
}

impl User {
    /// Returns the same user at another replica.
    pub(crate) fn at(&self, client: Client) -> Self {
        Self {
            client,
            ..self.clone()
        }
    }

    /// Adds an album; returns its identifier.
    pub(crate) async fn add_album(&self, title: &str) -> anyhow::Result<String> {
        let album = json!({ "title": title });
        let request = || self.request(Method::POST, "/api/albums").json(&album);
        let album: WithId = persist(request).await?.json().await.context("an album")?;
        Ok(album.id)
    }

    /// Adds so many small pictures to an album; returns their identifiers.
    pub(crate) async fn add_pictures(
        &self,
        album: &str,
        png: &Arc<[u8]>,
        count: usize,
    ) -> anyhow::Result<Vec<String>> {
        let sizes = (0..count).step_by(PICTURES_A_REQUEST);
        let sizes = sizes.map(|begin| PICTURES_A_REQUEST.min(count - begin));
        let batches = sizes.map(|size| self.add_batch(album, png, size));
        let uploads = stream::iter(batches).buffered(UPLOADS_AT_ONCE);
        let added: Vec<Vec<String>> = uploads.try_collect().await?;
        Ok(added.concat())
    }

    async fn add_batch(
        &self,
        album: &str,
        png: &Arc<[u8]>,
        size: usize,
    ) -> anyhow::Result<Vec<String>> {
        let request = || self.upload(album, png, "small.png", size);
        let response = persist(request).await.context("an upload")?;
        let pictures = identifiers(response.json().await.context("an upload's response")?)?;
        ensure!(
            pictures.len() == size,
            "{} pictures instead of {size}",
            pictures.len()
        );
        Ok(pictures)
    }

    /// Adds one large picture, without a second try.
    pub(crate) async fn add_large(&self, album: &str, jpeg: &Arc<[u8]>) -> anyhow::Result<()> {
        let response = self.upload(album, jpeg, "large.jpeg", 1).send().await?;
        succeeded(response).await.context("an upload")?;
        Ok(())
    }

    fn upload(&self, album: &str, bytes: &Arc<[u8]>, name: &str, count: usize) -> RequestBuilder {
        let part = || Part::bytes(bytes.to_vec()).file_name(name.to_owned());
        let form = (0..count).fold(Form::new(), |form, _| form.part("picture", part()));
        let path = format!("/api/albums/{album}/pictures");
        self.request(Method::POST, &path).multipart(form)
    }

    /// Likes a picture, or takes the like back.
    pub(crate) async fn set_like(&self, picture: &str, likes: bool) -> anyhow::Result<Like> {
        let method = if likes { Method::PUT } else { Method::DELETE };
        let request = self.request(method, &format!("/api/pictures/{picture}/like"));
        let response = succeeded(request.send().await?).await?;
        response.json().await.context("the response to a like")
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, path);
        request
            .header(COOKIE, &self.cookie)
            .header(CSRF_FIELD, &self.csrf)
    }
}

/// Returns the identifiers of an upload's response: a list, or an object that has one.
fn identifiers(response: Value) -> anyhow::Result<Vec<String>> {
    let list = match response {
        Value::Object(mut object) => object.remove("pictures").unwrap_or_default(),
        other => other,
    };
    let pictures: Vec<WithId> = serde_json::from_value(list).context("a list of pictures")?;
    Ok(pictures.into_iter().map(|picture| picture.id).collect())
}

/// Repeats a request while the server asks for that, as it does when many come at once.
async fn persist(request: impl Fn() -> RequestBuilder) -> anyhow::Result<Response> {
    for _ in 1..ATTEMPTS_MAX {
        let response = request().send().await?;
        let is_busy = [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        if !is_busy.contains(&response.status()) {
            return succeeded(response).await;
        }
        let seconds = response.headers().get(RETRY_AFTER);
        let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
        tokio::time::sleep(seconds.map_or(REST, Duration::from_secs)).await;
    }
    succeeded(request().send().await?).await
}

async fn succeeded(response: Response) -> anyhow::Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let url = response.url().clone();
    let body = response.text().await.unwrap_or_default();
    bail!("{url}: {status}: {body}")
}
