//! The JSON API, as a program uses it, and what it fills a site with.

use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use image::{ImageFormat, Rgb, RgbImage};
use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

const PASSWORD: &str = "greenroom-bench";
/// Longest time of a request: that of a large picture waits for others.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Pictures of one request, as many as are allowed.
const PICTURES_A_REQUEST: usize = 10;
/// Bytes of a piece of a large picture.
const PIECE_BYTES: usize = 16 * 1024;
/// Concurrent requests while data is prepared or counted.
const AT_ONCE: usize = 4;
/// Most attempts at a rejected request meanwhile, and the pause before another one.
const ATTEMPTS_MAX: usize = 20;
const REST: Duration = Duration::from_millis(500);

/// A client of one address.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// `http://ADDRESS`
    pub(crate) origin: String,
}

/// A user who is logged in.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct User {
    /// The cookie, such as `session=…`.
    cookie: String,
    csrf: String,
}

/// A user's pictures.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Site {
    owner: User,
    album: String,
    pub(crate) pictures: Vec<String>,
}

impl Site {
    /// Adds small pictures of a new user.
    pub(crate) async fn fill(client: &Client, pictures: usize) -> anyhow::Result<Self> {
        let owner = client.sign_up("owner").await?;
        let title = json!({ "title": "Small pictures" });
        let album = || {
            client
                .as_user(&owner, Method::POST, "/api/albums")
                .json(&title)
        };
        let album = persist(album).await?;
        let album = identifier(&album.json().await.context("an album")?)?;
        let mut site = Self {
            owner,
            album,
            pictures: Vec::new(),
        };
        let mut png = Vec::new();
        RgbImage::from_pixel(1, 1, Rgb([30, 120, 200]))
            .write_to(&mut Cursor::new(&mut png), ImageFormat::Png)?;
        let sizes = (0..pictures).step_by(PICTURES_A_REQUEST);
        let batches = sizes.map(|begin| {
            let count = PICTURES_A_REQUEST.min(pictures - begin);
            site.add_batch(client, &png, count)
        });
        let added = stream::iter(batches).buffered(AT_ONCE).try_collect();
        let added: Vec<Vec<String>> = added.await?;
        site.pictures = added.concat();
        Ok(site)
    }

    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read(file).with_context(|| file.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| file.display().to_string())
    }

    /// Writes it to a file, and for each of so many new users `FILE.N`: the URLs by which they like
    /// each picture, beginning with another one. Returns the words that loads need.
    pub(crate) async fn write(
        &self,
        file: &Path,
        client: &Client,
        likers: usize,
    ) -> anyhow::Result<Value> {
        fs::write(file, serde_json::to_vec(self)?).with_context(|| file.display().to_string())?;
        let User { cookie, csrf } = &self.owner;
        let picture = self.pictures.first();
        let mut words = json!({ "cookie": cookie, "csrf": csrf, "picture": picture });
        for number in 0..likers {
            let liker = client.sign_up(&format!("liker-{number}")).await?;
            words[format!("cookie{number}")] = json!(liker.cookie);
            words[format!("csrf{number}")] = json!(liker.csrf);
            let (before, behind) = self
                .pictures
                .split_at(number * self.pictures.len() / likers);
            let mut urls = String::new();
            for id in behind.iter().chain(before) {
                writeln!(urls, "{}/api/pictures/{id}/like", client.origin)?;
            }
            fs::write(format!("{}.{number}", file.display()), urls).context("a list of URLs")?;
        }
        Ok(words)
    }

    /// Returns the number of likes of all pictures together.
    pub(crate) async fn count(&self, client: &Client) -> anyhow::Result<Value> {
        let each = self.pictures.iter().map(|id| async move {
            let path = format!("/api/pictures/{id}");
            let picture = persist(|| client.request(Method::GET, &path)).await?;
            let picture: Value = picture.json().await?;
            picture["likes"].as_u64().context("a picture without likes")
        });
        let each: Vec<u64> = stream::iter(each).buffered(AT_ONCE).try_collect().await?;
        Ok(json!({ "likes": each.iter().sum::<u64>() }))
    }

    /// Adds small pictures; returns their identifiers.
    async fn add_batch(
        &self,
        client: &Client,
        png: &[u8],
        size: usize,
    ) -> anyhow::Result<Vec<String>> {
        let added = persist(|| self.upload(client, png, "small.png", size)).await?;
        let added: Value = added.json().await.context("an upload's response")?;
        let list = added.get("pictures").unwrap_or(&added);
        let list = list.as_array().context("no list of pictures")?;
        list.iter().map(identifier).collect()
    }

    /// Adds one large picture, in pieces as a browser reads them from a file, without a second try.
    pub(crate) async fn upload_large(&self, client: &Client, jpeg: &Bytes) -> anyhow::Result<()> {
        let pieces = (0..jpeg.len()).step_by(PIECE_BYTES);
        let pieces: Vec<_> = pieces
            .map(|begin| jpeg.slice(begin..jpeg.len().min(begin + PIECE_BYTES)))
            .map(anyhow::Ok)
            .collect();
        let body = Body::wrap_stream(stream::iter(pieces));
        let part = Part::stream_with_length(body, jpeg.len().try_into()?);
        let form = Form::new().part("picture", part.file_name("large.jpeg"));
        let request = self.add_pictures(client).multipart(form);
        succeeded(request.send().await?).await?;
        Ok(())
    }

    fn upload(&self, client: &Client, bytes: &[u8], name: &str, count: usize) -> RequestBuilder {
        let part = || Part::bytes(bytes.to_vec()).file_name(name.to_owned());
        let form = (0..count).fold(Form::new(), |form, _| form.part("picture", part()));
        self.add_pictures(client).multipart(form)
    }

    fn add_pictures(&self, client: &Client) -> RequestBuilder {
        let path = format!("/api/albums/{}/pictures", self.album);
        client.as_user(&self.owner, Method::POST, &path)
    }
}

impl Client {
    pub(crate) fn new(server: SocketAddrV4) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        let origin = format!("http://{server}");
        Ok(Self { http, origin })
    }

    /// Signs up and logs in a new user.
    pub(crate) async fn sign_up(&self, name: &str) -> anyhow::Result<User> {
        let email = format!("{name}@example.org");
        let user = json!({ "name": name, "email": email, "password": PASSWORD });
        persist(|| self.request(Method::POST, "/api/users").json(&user)).await?;
        let user = json!({ "name": name, "password": PASSWORD });
        let log_in = || self.request(Method::POST, "/api/sessions").json(&user);
        let response = persist(log_in).await?;
        let cookies = response.headers().get_all(SET_COOKIE).iter();
        let cookie = cookies
            .filter_map(|cookie| cookie.to_str().ok()?.split(';').next())
            .find(|cookie| cookie.starts_with("session="))
            .context("the log-in's response has no cookie `session`")?
            .to_owned();
        let session: Value = response.json().await.context("the log-in's response")?;
        let csrf = session["csrf"]
            .as_str()
            .context("no CSRF token")?
            .to_owned();
        Ok(User { cookie, csrf })
    }

    /// Likes a picture, or takes the like back; returns the place of this change in the topic of
    /// the picture's likes.
    pub(crate) async fn set_like(
        &self,
        user: &User,
        picture: &str,
        likes: bool,
    ) -> anyhow::Result<u64> {
        let method = if likes { Method::PUT } else { Method::DELETE };
        let request = self.as_user(user, method, &format!("/api/pictures/{picture}/like"));
        let like: Value = succeeded(request.send().await?).await?.json().await?;
        like["likes_seq"]
            .as_u64()
            .context("a like without its place")
    }

    /// Reads one response to its end.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<()> {
        let response = self.request(Method::GET, path).send().await?;
        succeeded(response).await?.bytes().await?;
        Ok(())
    }

    fn as_user(&self, user: &User, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path)
            .header(COOKIE, &user.cookie)
            .header("x-csrf-token", &user.csrf)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.origin))
    }
}

fn identifier(value: &Value) -> anyhow::Result<String> {
    Ok(value["id"].as_str().context("no identifier")?.to_owned())
}

/// Repeats a request while the server rejects it, as it does when many come at once.
async fn persist(request: impl Fn() -> RequestBuilder) -> anyhow::Result<Response> {
    for attempt in 1.. {
        let response = request().send().await?;
        let is_busy = matches!(
            response.status(),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        );
        if !is_busy || attempt == ATTEMPTS_MAX {
            return succeeded(response).await;
        }
        sleep(REST).await;
    }
    bail!("no attempt")
}

async fn succeeded(response: Response) -> anyhow::Result<Response> {
    if response.status().is_success() {
        return Ok(response);
    }
    let (status, url) = (response.status(), response.url().clone());
    bail!(
        "{url}: {status}: {}",
        response.text().await.unwrap_or_default()
    )
}
