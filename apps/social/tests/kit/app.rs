use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use greenroom::Limits;
use http::header::{CONTENT_TYPE, COOKIE, HeaderMap, SET_COOKIE};
use http::{Method, StatusCode};
use reqwest::RequestBuilder;
use rustls::crypto::ring;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use social::App;
use social::config::{FilesSettings, LimitSettings, PasswordSettings, Settings, StoreSettings};
use social::model::UserChange;
use social::server::Server;
use tempfile::TempDir;

/// The password of everybody who signs up by [`Client::signed_up`].
pub(crate) const PASSWORD: &str = "a password of some length";

/// The application in this process, at a port of its own; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    handle: greenroom::Handle,
    _directory: TempDir,
}

impl TestApp {
    /// Starts it with the embedded storage, and without limits on rates.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts it on this storage, without limits on rates.
    pub(crate) async fn on(store: StoreSettings) -> Self {
        Self::with(|settings| settings.store = store).await
    }

    /// Starts it with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let mut settings = Settings {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            store: StoreSettings::Sqlite(directory.path().join("social.db")),
            files: FilesSettings::Directory(directory.path().join("files")),
            sample: Some(false),
            // Longer than many concurrent tests on a slow machine take.
            passwords: PasswordSettings {
                queue_wait_max: Duration::from_mins(1),
                ..PasswordSettings::default()
            },
            // A slow machine must not turn a test's client into a slow one.
            server: Limits {
                body_grace: Duration::from_mins(10),
                ..Limits::default()
            },
            limits: LimitSettings {
                log_ins: 0,
                mails: 0,
                sign_ups: 0,
                changes: 0,
                uploads: 0,
                requests: 0,
            },
            ..Settings::default()
        };
        change(&mut settings);
        let server = Server::start(settings).await.expect("it can be started");
        let app = server.app().expect("it has the role web").clone();
        let handle = server.handle();
        let address = *server.addresses().first().expect("it listens");
        tokio::spawn(server.serve());
        Self {
            app,
            address,
            handle,
            _directory: directory,
        }
    }

    /// Returns the state of its server.
    pub(crate) fn status(&self) -> greenroom::Status {
        self.handle.status()
    }

    /// Returns a client that is not logged in.
    pub(crate) fn client(&self) -> Client {
        // An error means that a provider is installed already.
        let _ = ring::default_provider().install_default();
        Client {
            http: reqwest::Client::new(),
            base: format!("http://{}", self.address),
            session: None,
        }
    }

    /// Returns a client that has signed up, whose address is confirmed, and that is logged in.
    pub(crate) async fn user(&self, name: &str) -> Client {
        let client = self.client().signed_up(name).await;
        let store = &self.app.store;
        let user = store.user_by_name(name).await.expect("asked");
        let user = user.expect("they have signed up");
        let confirmed = UserChange {
            email: user.wanted_email,
            ..UserChange::default()
        };
        let changed = store.update_user(user.id, confirmed).await;
        changed.expect("the storage is there");
        client
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// A client of the API with a cookie and a CSRF token, if it is logged in.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    pub(crate) session: Option<Session>,
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Name and value of the cookie.
    pub(crate) cookie: String,
    pub(crate) csrf: String,
    pub(crate) user: Value,
}

impl Client {
    /// Asks at another address, of a proxy before the application.
    pub(crate) fn at(mut self, address: &str) -> Self {
        self.base = format!("http://{address}");
        self
    }

    /// Signs up and logs in.
    pub(crate) async fn signed_up(self, name: &str) -> Self {
        let user = json!({"name": name, "email": "somebody@example.org", "password": PASSWORD});
        self.post("/api/users", &user)
            .await
            .expect(StatusCode::CREATED);
        self.logged_in(name, PASSWORD).await
    }

    /// Logs in.
    pub(crate) async fn logged_in(mut self, name: &str, password: &str) -> Self {
        let who = json!({"name": name, "password": password});
        let response = self.post("/api/sessions", &who).await;
        let cookie = response.header(SET_COOKIE.as_str()).split(';').next();
        let begun: Value = response.json(StatusCode::CREATED);
        self.session = Some(Session {
            cookie: cookie.unwrap_or_default().to_owned(),
            csrf: begun["csrf"].as_str().expect("a token").to_owned(),
            user: begun["user"].clone(),
        });
        self
    }

    /// Builds a request with all that the session needs.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.session {
            Some(session) => request
                .header(COOKIE, &session.cookie)
                .header("x-csrf-token", &session.csrf),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> TestResponse {
        send(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str) -> TestResponse {
        send(self.request(Method::PUT, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> TestResponse {
        send(self.request(Method::DELETE, path)).await
    }

    /// Makes an album and returns its identifier.
    pub(crate) async fn album(&self, title: &str) -> String {
        let album: Value = self
            .post("/api/albums", &json!({"title": title}))
            .await
            .json(StatusCode::CREATED);
        album["id"].as_str().expect("it has one").to_owned()
    }

    /// Uploads a small picture and returns its identifier.
    pub(crate) async fn picture(&self, album: &str) -> String {
        let response = self.upload(album, &[("picture", &png(8, 8))]).await;
        let pictures: Value = response.json(StatusCode::CREATED);
        pictures[0]["id"].as_str().expect("it has one").to_owned()
    }

    /// Sends a form of these fields.
    pub(crate) async fn upload(&self, album: &str, parts: &[(&str, &[u8])]) -> TestResponse {
        let (media_type, body) = form(parts);
        let path = format!("/api/albums/{album}/pictures");
        let request = self.request(Method::POST, &path);
        send(request.header(CONTENT_TYPE, media_type).body(body)).await
    }
}

/// A response, wholly read.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Sends a request and reads the whole response. A request that the server rejects unread, because
/// this machine is overloaded, is sent again after `Retry-After`.
pub(crate) async fn send(request: RequestBuilder) -> TestResponse {
    let again = request.try_clone();
    let response = request.send().await.expect("the server responds");
    let response = TestResponse {
        status: response.status(),
        headers: response.headers().clone(),
        body: response.bytes().await.expect("the response is whole"),
    };
    match again {
        Some(again) if response.is_of_overload() => {
            let seconds = response.header("retry-after").parse();
            tokio::time::sleep(Duration::from_secs(seconds.unwrap_or(1))).await;
            Box::pin(send(again)).await
        }
        _ => response,
    }
}

impl TestResponse {
    fn is_of_overload(&self) -> bool {
        let text = String::from_utf8_lossy(&self.body).to_lowercase();
        self.status == StatusCode::SERVICE_UNAVAILABLE && text.contains("overloaded")
    }

    /// Returns a header; empty, if there is none of this name.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("it is ASCII"))
    }

    #[track_caller]
    pub(crate) fn expect(&self, status: StatusCode) {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
    }

    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self, status: StatusCode) -> T {
        self.expect(status);
        serde_json::from_slice(&self.body).expect("it is JSON")
    }

    /// Returns the detail of a rejection, which is a problem of RFC 9457.
    #[track_caller]
    pub(crate) fn problem(&self, status: StatusCode) -> String {
        let problem: social::Problem = self.json(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem.status, status.as_u16());
        assert_eq!(
            (problem.r#type.as_str(), problem.detail.is_empty()),
            ("about:blank", false)
        );
        assert_eq!(Some(problem.title.as_str()), status.canonical_reason());
        problem.detail
    }

    /// Returns the field that a rejection names.
    #[track_caller]
    pub(crate) fn field(&self) -> String {
        let problem: social::Problem = self.json(StatusCode::UNPROCESSABLE_ENTITY);
        problem.field.expect("it names a field")
    }
}

/// Returns a black picture of these dimensions.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let mut content = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(width, height)
        .write_to(&mut content, image::ImageFormat::Png)
        .expect("the picture is encoded");
    content.into_inner()
}

/// Returns a form (RFC 7578) and its media type.
pub(crate) fn form(parts: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    const BOUNDARY: &str = "between-the-parts-of-a-test";
    let mut body = Vec::new();
    for (name, content) in parts {
        let head =
            format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}
