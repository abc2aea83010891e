//! Reading of third parties' responses, which are not trusted.

use anyhow::bail;
use reqwest::Response;

/// Longest body, in bytes.
const BYTES_MAX: usize = 64 * 1024;

/// Reads a response's body, up to [`BYTES_MAX`].
pub(super) async fn read(mut response: Response) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(part) = response
        .chunk()
        .await
        .map_err(reqwest::Error::without_url)?
    {
        if body.len() + part.len() > BYTES_MAX {
            bail!("the response is longer than {BYTES_MAX} bytes");
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}
