use std::net::IpAddr;

use axum::extract::FromRequestParts;
use greenroom::ClientAddr;
use http::request::Parts;

use crate::Failure;

/// The source of a request as limits count it: the [address of the client](ClientAddr), of IPv6 its
/// /64 network.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Client(pub IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let client = ClientAddr::from_request_parts(parts, state).await;
        let client = client.map_err(Failure::internal)?;
        let network = greenroom::Client::at(client.ip()).network();
        Ok(Self(network.unwrap_or(client.ip())))
    }
}
