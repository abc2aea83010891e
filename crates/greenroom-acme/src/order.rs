//! One order: authorizations, challenges, the certificate (RFC 8555, 7.4).

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeStatus,
    Error, Identifier, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::crypto::CryptoProvider;
use tracing::debug;

use crate::certificate::Certificate;
use crate::challenges::{ChallengeKind, Challenges, Provision};
use crate::failure::Failure;

/// Times that a request is signed again because its nonce was not taken. The protocol's library
/// itself tries three times, so 33 in all.
pub(crate) const BAD_NONCES_MAX: u32 = 10;

/// The first wait before an order is looked at; each further one is half as long again, unless
/// the authority says when to come back.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Evaluates a request again as long as the authority does not take its nonce: each rejection
/// brings a fresh one (RFC 8555, 6.5).
macro_rules! persist {
    ($request:expr) => {{
        let mut rejections = 0;
        loop {
            match $request {
                Err(error)
                    if rejections < $crate::order::BAD_NONCES_MAX
                        && $crate::order::is_bad_nonce(&error) =>
                {
                    rejections += 1;
                }
                result => break result,
            }
        }
    }};
}
pub(crate) use persist;

pub(crate) fn is_bad_nonce(error: &Error) -> bool {
    let Error::Api(problem) = error else {
        return false;
    };
    problem.r#type.as_deref() == Some(crate::client::BAD_NONCE)
}

/// The settings and parts that all orders have in common.
pub(crate) struct Orders {
    pub(crate) challenges: Arc<Challenges>,
    /// The kinds of challenges that may be used.
    pub(crate) kinds: Vec<ChallengeKind>,
    pub(crate) profile: Option<String>,
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) timeout: Duration,
}

/// A certificate that was obtained, and the text of its file.
pub(crate) struct Obtained {
    pub(crate) certificate: Certificate,
    pub(crate) text: String,
}

impl Orders {
    /// Returns the kinds of challenges of an attempt after so many that have failed: each kind at
    /// first, and one in turn after that, so that the authority's limit on failed validations is
    /// not used up.
    pub(crate) fn kinds_after(&self, failed: u32) -> &[ChallengeKind] {
        let turn = failed as usize % self.kinds.len();
        if failed == 0 {
            &self.kinds
        } else {
            &self.kinds[turn..=turn]
        }
    }

    /// Obtains a certificate for the names, validated by challenges of this kind where the
    /// authority offers it.
    pub(crate) async fn obtain(
        &self,
        account: &Account,
        names: &[String],
        kind: ChallengeKind,
        replaced: Option<&CertificateIdentifier<'_>>,
    ) -> Result<Obtained, Failure> {
        let mut order = self.place(account, names, replaced).await?;
        // Responded to until the authority has made up its mind.
        let provided = self.prove(&mut order, kind).await?;
        self.until_ready(&mut order, kind).await?;
        drop(provided);
        let key = self.finalize(&mut order, names).await?;
        let chain = persist!(order.poll_certificate(&self.polling()).await)?;
        let text = format!("{}{chain}", key.serialize_pem());
        let certificate = Certificate::from_pem(text.as_bytes(), &self.provider)?;
        if !certificate.covers(names) {
            let text = format!("the authority's certificate is for {:?}", certificate.names);
            return Err(Failure::other(text));
        }
        Ok(Obtained { certificate, text })
    }

    async fn place(
        &self,
        account: &Account,
        names: &[String],
        replaced: Option<&CertificateIdentifier<'_>>,
    ) -> Result<Order, Failure> {
        let identifiers: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
        let plain = || {
            let order = NewOrder::new(&identifiers);
            match &self.profile {
                Some(profile) => order.profile(profile),
                None => order,
            }
        };
        if let Some(replaced) = replaced {
            let order = plain().replaces(replaced.clone());
            let placed = persist!(account.new_order(&order).await).map_err(Failure::from);
            match placed {
                Err(failure) if failure.may_be_for_replacing() => {
                    debug!(%failure, "an order does without the certificate that it replaces");
                }
                placed => return placed,
            }
        }
        Ok(persist!(account.new_order(&plain()).await)?)
    }

    /// Provides the responses to the challenges, and says so to the authority.
    async fn prove(
        &self,
        order: &mut Order,
        kind: ChallengeKind,
    ) -> Result<Vec<Provision>, Failure> {
        persist!(read_authorizations(order).await)?;
        let mut provided = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            let name = authorization.identifier().to_string();
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                _ => return Err(Failure::authorization(&name, None, problem(&authorization))),
            }
            let kind = self.offered(&authorization, kind).ok_or_else(|| {
                let text = format!("the authority offers no challenge for {name} that is enabled");
                Failure::other(text)
            })?;
            let mut challenge = authorization
                .challenge(kind.into())
                .ok_or_else(|| Failure::other("an offered challenge is gone"))?;
            let text = challenge.key_authorization();
            let token = &challenge.token;
            let provision = self
                .challenges
                .provide(kind, &name, token, &text, &self.provider)
                .map_err(Failure::other)?;
            provided.push(provision);
            persist!(challenge.set_ready().await)?;
        }
        Ok(provided)
    }

    /// Returns the kind that is to be used: the wanted one if the authority offers it.
    fn offered(
        &self,
        authorization: &AuthorizationHandle<'_>,
        wanted: ChallengeKind,
    ) -> Option<ChallengeKind> {
        let is_offered = |kind: &ChallengeKind| {
            let mut challenges = authorization.challenges.iter();
            challenges.any(|challenge| challenge.r#type == (*kind).into())
        };
        let mut kinds = [wanted].into_iter().chain(self.kinds.iter().copied());
        kinds.find(is_offered)
    }

    async fn until_ready(&self, order: &mut Order, kind: ChallengeKind) -> Result<(), Failure> {
        let refused = match persist!(order.poll_ready(&self.polling()).await) {
            Ok(OrderStatus::Ready) => return Ok(()),
            Ok(_) => None,
            Err(Error::Api(problem)) => Some(problem),
            Err(error) => return Err(error.into()),
        };
        persist!(refresh_authorizations(order).await)?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let authorization = authorization?;
            if authorization.status == AuthorizationStatus::Invalid {
                let name = authorization.identifier().to_string();
                let problem = problem(&authorization).or(refused);
                return Err(Failure::authorization(&name, Some(kind), problem));
            }
        }
        Err(refused.map_or_else(
            || Failure::other("the authority calls the order invalid"),
            |problem| Error::Api(problem).into(),
        ))
    }

    async fn finalize(&self, order: &mut Order, names: &[String]) -> Result<KeyPair, Failure> {
        let request = || {
            let mut params = CertificateParams::new(names)?;
            params.distinguished_name = DistinguishedName::new();
            let key = KeyPair::generate()?;
            Ok((params.serialize_request(&key)?, key))
        };
        let (request, key) =
            request().map_err(|error: rcgen::Error| Failure::other(error.to_string()))?;
        persist!(order.finalize_csr(request.der()).await)?;
        Ok(key)
    }

    fn polling(&self) -> RetryPolicy {
        RetryPolicy::new()
            .initial_delay(POLL_INTERVAL)
            .backoff(1.5)
            .timeout(self.timeout)
    }
}

/// Has the authorizations read, which the order then holds.
async fn read_authorizations(order: &mut Order) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?;
    }
    Ok(())
}

async fn refresh_authorizations(order: &mut Order) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?.refresh().await?;
    }
    Ok(())
}

/// Returns what the authority says about the challenge that failed.
fn problem(authorization: &AuthorizationHandle<'_>) -> Option<Problem> {
    let mut challenges = authorization.challenges.iter();
    let failed = challenges.find(|challenge| challenge.status == ChallengeStatus::Invalid)?;
    failed.error.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full};
    use instant_acme::{AccountCredentials, BodyWrapper, BytesResponse, HttpClient};
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use std::pin::Pin;

    /// An authority that takes every order, and does not repeat what it replaces.
    #[derive(Clone, Default)]
    struct Authority {
        suggests_renewals: bool,
        /// The certificate that each order says it replaces.
        replaced: Arc<Mutex<Vec<Option<String>>>>,
    }

    impl Authority {
        fn directory(&self) -> Value {
            let url = |path| format!("https://ca.example/{path}");
            let renewal_info = self.suggests_renewals.then(|| url("renewal-info"));
            json!({
                "newNonce": url("nonce"),
                "newAccount": url("account"),
                "newOrder": url("order"),
                "renewalInfo": renewal_info,
            })
        }

        fn order(&self, signed: &[u8]) -> Value {
            let signed: Value = serde_json::from_slice(signed).expect("JSON");
            let payload = signed["payload"].as_str().expect("text");
            let payload = BASE64_URL_SAFE_NO_PAD.decode(payload).expect("base64url");
            let order: Value = serde_json::from_slice(&payload).expect("JSON");
            let replaced = order["replaces"].as_str().map(str::to_owned);
            self.replaced.lock().push(replaced);
            json!({
                "status": "pending",
                "authorizations": [],
                "finalize": "https://ca.example/finalize",
            })
        }
    }

    impl HttpClient for Authority {
        fn request(
            &self,
            request: Request<BodyWrapper<Bytes>>,
        ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
            let authority = self.clone();
            Box::pin(async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("it is there").to_bytes();
                let body = match parts.uri.path() {
                    "/directory" => authority.directory(),
                    "/order" => authority.order(&body),
                    _ => Value::Null,
                };
                let response = Response::builder()
                    .header("replay-nonce", "bm9uY2U")
                    .header("location", "https://ca.example/order/1")
                    .body(Full::new(Bytes::from(body.to_string())));
                Ok(response.expect("a response").into())
            })
        }
    }

    async fn account(authority: &Authority) -> Account {
        let key = KeyPair::generate().expect("a key").serialize_der();
        let credentials = json!({
            "id": "https://ca.example/account/1",
            "key_pkcs8": BASE64_URL_SAFE_NO_PAD.encode(key),
            "directory": "https://ca.example/directory",
        });
        let credentials: AccountCredentials =
            serde_json::from_value(credentials).expect("credentials");
        Account::builder_with_http(Box::new(authority.clone()))
            .from_credentials(credentials)
            .await
            .expect("an account")
    }

    /// Places an order that replaces a certificate. Returns the certificate that each order has
    /// named that the authority got.
    async fn placed(suggests_renewals: bool) -> Vec<Option<String>> {
        let authority = Authority {
            suggests_renewals,
            ..Authority::default()
        };
        let orders = Orders {
            challenges: Arc::default(),
            kinds: vec![ChallengeKind::Http01],
            profile: None,
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            timeout: Duration::from_secs(30),
        };
        let replaced = serde_json::from_str(r#""AQ.Ag""#).expect("a certificate's name");
        let names = ["example.org".to_owned()];
        let account = account(&authority).await;
        let order = orders.place(&account, &names, Some(&replaced)).await;
        let _order = order.expect("it is placed");
        authority.replaced.lock().clone()
    }

    #[tokio::test]
    async fn rfc9773_5_an_authority_that_does_not_repeat_what_is_replaced_gets_a_plain_order() {
        assert_eq!(placed(true).await, [Some("AQ.Ag".to_owned()), None]);
    }

    #[tokio::test]
    async fn rfc9773_5_an_authority_that_suggests_no_renewals_any_more_gets_a_plain_order() {
        assert_eq!(placed(false).await, [None]);
    }
}
