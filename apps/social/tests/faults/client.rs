//! A client of the API that does not give up: it goes to the next replica, and records each
//! response.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

/// Longest time of a request: a longer one hangs, and fails the test. The storage is given up after
/// 5 s.
const HANG: Duration = Duration::from_secs(15);

/// Pause of a polite client between tries.
const PAUSE: Duration = Duration::from_millis(50);

/// The result of one try.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Success: a 2xx.
    Acknowledged(Value),
    /// Rejection: a 4xx, that a later try would get too.
    Rejected(StatusCode, Value),
    /// Unknown if it was done: 503, or the connection broke.
    Unknown,
}

/// The replicas, used in turns.
#[derive(Debug)]
pub(crate) struct Replicas {
    pub(crate) addresses: Vec<SocketAddr>,
    http: reqwest::Client,
    turn: AtomicUsize,
    /// Responses with 503.
    pub(crate) unavailable: AtomicU64,
    /// Connections that were refused or broke.
    pub(crate) broken: AtomicU64,
}

/// A user who has logged in.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) name: String,
    cookie: String,
    csrf: String,
}

pub(crate) const PASSWORD: &str = "correct horse battery";

/// Returns a client, for the replicas' starts too.
pub(crate) fn http_client() -> reqwest::Client {
    // The library needs a provider of cryptography, even without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(HANG).build();
    client.expect("a client needs no more than this")
}

impl Replicas {
    pub(crate) fn new(addresses: Vec<SocketAddr>) -> Self {
        let http = http_client();
        Self {
            addresses,
            http,
            turn: AtomicUsize::new(0),
            unavailable: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        }
    }

    fn next(&self) -> SocketAddr {
        self.addresses[self.turn.fetch_add(1, Ordering::Relaxed) % self.addresses.len()]
    }

    pub(crate) async fn send(
        &self,
        login: Option<&Login>,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Outcome {
        let mut request = self
            .http
            .request(method, format!("http://{}{path}", self.next()));
        if let Some(login) = login {
            request = request
                .header("cookie", &login.cookie)
                .header("x-csrf-token", &login.csrf);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.read(request.send().await).await
    }

    async fn read(&self, response: reqwest::Result<Response>) -> Outcome {
        let response = match response {
            Ok(response) => response,
            Err(error) => return self.note_broken(&error),
        };
        let status = response.status();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            assert!(
                response.headers().contains_key("retry-after"),
                "503 without Retry-After: {response:?}"
            );
            self.unavailable.fetch_add(1, Ordering::Relaxed);
            return Outcome::Unknown;
        }
        assert!(!status.is_server_error(), "{status}: {response:?}");
        match response.bytes().await {
            Ok(body) => {
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                if status.is_success() {
                    Outcome::Acknowledged(body)
                } else {
                    Outcome::Rejected(status, body)
                }
            }
            Err(error) => self.note_broken(&error),
        }
    }

    fn note_broken(&self, error: &reqwest::Error) -> Outcome {
        assert!(
            !error.is_timeout(),
            "no response within {HANG:?}: {error:?}"
        );
        self.broken.fetch_add(1, Ordering::Relaxed);
        Outcome::Unknown
    }

    /// Tries until there is a definite response; only for requests that may be repeated.
    pub(crate) async fn insist(
        &self,
        login: Option<&Login>,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Value {
        loop {
            match self.send(login, method.clone(), path, body).await {
                Outcome::Acknowledged(value) => return value,
                Outcome::Rejected(status, value) => panic!("{method} {path}: {status} {value}"),
                Outcome::Unknown => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits until so many more tries got 503.
    pub(crate) async fn until_unavailable(&self, responses: u64) {
        let enough = self.unavailable.load(Ordering::Relaxed) + responses;
        while self.unavailable.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.insist(None, Method::GET, path, None).await
    }

    /// Signs up; a name that is taken was taken by an earlier try of this client.
    pub(crate) async fn sign_up(&self, name: &str) {
        let user =
            json!({"name": name, "email": format!("{name}@example.org"), "password": PASSWORD});
        loop {
            match self
                .send(None, Method::POST, "/api/users", Some(&user))
                .await
            {
                Outcome::Acknowledged(_) | Outcome::Rejected(StatusCode::CONFLICT, _) => return,
                Outcome::Rejected(status, value) => panic!("sign-up: {status} {value}"),
                Outcome::Unknown => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    pub(crate) async fn log_in(&self, name: &str) -> Login {
        let body = json!({"name": name, "password": PASSWORD});
        let url = format!("http://{}/api/sessions", self.next());
        let response = self
            .http
            .post(url)
            .json(&body)
            .send()
            .await
            .expect("all replicas run");
        assert_eq!(response.status(), StatusCode::CREATED);
        let cookie = response.headers()["set-cookie"]
            .to_str()
            .expect("a cookie is text");
        let cookie = cookie
            .split(';')
            .next()
            .expect("a cookie has a value")
            .to_owned();
        let body: Value = response.json().await.expect("a log-in responds with JSON");
        let csrf = body["csrf"]
            .as_str()
            .expect("with a token for changes")
            .to_owned();
        let name = name.to_owned();
        Login { name, cookie, csrf }
    }

    /// Uploads pictures, given as file contents.
    pub(crate) async fn upload(
        &self,
        login: &Login,
        album: &str,
        pictures: Vec<Vec<u8>>,
    ) -> Vec<String> {
        let Outcome::Acknowledged(body) = self.try_upload(login, album, pictures).await else {
            panic!("all replicas run, and there is room for pictures");
        };
        let pictures = body.as_array().expect("uploads respond with a list");
        let id = |picture: &Value| picture["id"].as_str().expect("of identifiers").to_owned();
        pictures.iter().map(id).collect()
    }

    /// Uploads pictures once.
    pub(crate) async fn try_upload(
        &self,
        login: &Login,
        album: &str,
        pictures: Vec<Vec<u8>>,
    ) -> Outcome {
        let part = |picture| reqwest::multipart::Part::bytes(picture).file_name("picture.png");
        let form = pictures
            .into_iter()
            .fold(reqwest::multipart::Form::new(), |form, picture| {
                form.part("picture", part(picture))
            });
        let url = format!("http://{}/api/albums/{album}/pictures", self.next());
        let request = self
            .http
            .post(url)
            .header("cookie", &login.cookie)
            .header("x-csrf-token", &login.csrf);
        self.read(request.multipart(form).send().await).await
    }
}
