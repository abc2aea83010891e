use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use social::model::Id;

use crate::kit::app::{Client, TestResponse, send};

/// The components that must be covered, in the order of the RFC's examples.
pub(crate) const COVERED: &str = r#"("@method" "@path" "@query" "content-digest")"#;

/// A program that signs requests, with the values for its next request.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    pub(crate) client: Client,
    pub(crate) key: String,
    pub(crate) secret: Vec<u8>,
    /// Seconds to add to the time of signing.
    pub(crate) late: i64,
    /// The nonce; a new one each time, if there is none.
    pub(crate) nonce: Option<String>,
    pub(crate) covered: String,
    /// Further parameters behind the required ones.
    pub(crate) more: String,
    /// The request that is sent instead of the signed one.
    pub(crate) sent: Option<Sent>,
}

/// A request as it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: String,
}

impl Signer {
    /// Makes a new key of a user, who is not logged in for these requests.
    pub(crate) async fn of(user: &Client) -> Self {
        let key = user.post("/api/me/keys", &json!({"name": "test"})).await;
        let key: Value = key.json(StatusCode::CREATED);
        let text = |name: &str| key[name].as_str().expect("a text").to_owned();
        let mut client = user.clone();
        client.session = None;
        Self {
            client,
            key: text("id"),
            secret: hex::decode(text("secret")).expect("digits"),
            late: 0,
            nonce: None,
            covered: COVERED.to_owned(),
            more: String::new(),
            sent: None,
        }
    }

    /// Returns the headers of a signed request: `Content-Digest`, `Signature-Input`, `Signature`.
    pub(crate) fn headers(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> [(&'static str, String); 3] {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)));
        let created = Timestamp::now().as_second() - self.late;
        let nonce = self.nonce.clone().unwrap_or_else(|| Id::new().to_string());
        let input = format!(
            r#"{};created={created};nonce="{nonce}";keyid="{}";alg="hmac-sha256"{}"#,
            self.covered, self.key, self.more
        );
        let mut lines = Vec::new();
        for component in self.covered.trim_matches(['(', ')']).split(' ') {
            let value = match component {
                r#""@method""# => method.as_str(),
                r#""@path""# => path,
                r#""@query""# => &format!("?{query}"),
                _ => &digest,
            };
            lines.push(format!("{component}: {value}"));
        }
        lines.push(format!("\"@signature-params\": {input}"));
        let mut hmac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("any key will do");
        hmac.update(lines.join("\n").as_bytes());
        let tag = STANDARD.encode(hmac.finalize().into_bytes());
        [
            ("content-digest", digest),
            ("signature-input", format!("any={input}")),
            ("signature", format!("any=:{tag}:")),
        ]
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &str) -> TestResponse {
        let headers = self.headers(&method, path, body.as_bytes());
        let signed = Sent {
            method,
            path: path.to_owned(),
            body: body.to_owned(),
        };
        let sent = self.sent.clone().unwrap_or(signed);
        let mut request = self.client.request(sent.method, &sent.path).body(sent.body);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, "").await
    }
}
