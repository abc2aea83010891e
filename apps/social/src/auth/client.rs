use std::net::IpAddr;

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::{App, Failure};

/// Where a request comes from, as limits count it: the address of the client, of IPv6 its network of 64 bits. What
/// `X-Forwarded-For` says is believed as far as [trusted proxies](crate::config::Settings::trusted_proxies) have written it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Client(pub IpAddr);

impl FromRequestParts<App> for Client {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let client = app.client_key.client(parts);
        let network = client.and_then(greenroom::Client::network);
        let unknown = || Failure::internal("the server does not say who connected");
        network.map(Self).ok_or_else(unknown)
    }
}
