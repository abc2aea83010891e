//! Tokens of the third party (OAuth 2, client credentials: RFC 6749, section 4.4).

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use oauth2::basic::{BasicClient, BasicTokenResponse, BasicTokenType};
use oauth2::{
    ClientId, ClientSecret, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse,
    RequestTokenError, TokenResponse, TokenUrl,
};
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderValue};

use super::response::read;
use crate::config::ShareSettings;

type OAuth =
    BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// A token of the third party and its lifetime.
#[derive(Clone)]
pub(super) struct Token {
    /// The header's value: `Bearer` and the token.
    pub(super) authorization: HeaderValue,
    /// Lifetime from when it was requested; `None` if the provider does not say.
    pub(super) life: Option<Duration>,
}

impl Debug for Token {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Token")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// The provider of tokens.
pub(super) struct Provider {
    oauth: OAuth,
    client: Client,
}

#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct HttpError(anyhow::Error);

impl Provider {
    pub(super) fn new(settings: &ShareSettings, client: &Client) -> Self {
        let oauth = BasicClient::new(ClientId::new(settings.client_id.clone()))
            .set_client_secret(ClientSecret::new(settings.client_secret.clone()))
            .set_token_uri(TokenUrl::from_url(settings.token_url.clone()));
        Self {
            oauth,
            client: client.clone(),
        }
    }

    /// Requests a token, once.
    pub(super) async fn token(&self) -> anyhow::Result<Token> {
        let client = self.client.clone();
        let call = move |request: HttpRequest| call(client.clone(), request);
        match self
            .oauth
            .exchange_client_credentials()
            .request_async(&call)
            .await
        {
            Ok(response) => checked(&response),
            Err(RequestTokenError::ServerResponse(rejection)) => {
                bail!("the provider rejects the request: {rejection}")
            }
            Err(RequestTokenError::Request(error)) => Err(error.0),
            Err(RequestTokenError::Parse(error, _)) => {
                bail!("the provider's response is no token: {error}")
            }
            Err(RequestTokenError::Other(reason)) => {
                bail!("the provider's response is no token: {reason}")
            }
        }
    }
}

async fn call(client: Client, request: HttpRequest) -> Result<HttpResponse, HttpError> {
    exchange(&client, request).await.map_err(HttpError)
}

async fn exchange(client: &Client, request: HttpRequest) -> anyhow::Result<HttpResponse> {
    let received = client
        .execute(request.try_into()?)
        .await
        .map_err(reqwest::Error::without_url)?;
    let mut response = http::Response::builder().status(received.status());
    if let Some(kind) = received.headers().get(CONTENT_TYPE) {
        response = response.header(CONTENT_TYPE, kind);
    }
    Ok(response.body(read(received).await?)?)
}

/// Validates the provider's response.
fn checked(response: &BasicTokenResponse) -> anyhow::Result<Token> {
    let kind = response.token_type();
    ensure!(
        *kind == BasicTokenType::Bearer,
        "the provider's token is not of the type bearer, but {kind:?}"
    );
    let life = response.expires_in();
    ensure!(
        life != Some(Duration::ZERO),
        "the provider's token has expired already"
    );
    let secret = response.access_token().secret();
    ensure!(!secret.is_empty(), "the provider's token is empty");
    let mut authorization = HeaderValue::try_from(format!("Bearer {secret}"))
        .context("the provider's token has characters that no header may have")?;
    authorization.set_sensitive(true);
    Ok(Token {
        authorization,
        life,
    })
}
