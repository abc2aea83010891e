//! What third parties answer, of which nothing is believed.

use anyhow::bail;
use reqwest::Response;

/// The longest answer.
const BYTES_MAX: usize = 64 * 1024;

/// Reads an answer's body, up to [`BYTES_MAX`].
pub(super) async fn read(mut answer: Response) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + part.len() > BYTES_MAX {
            bail!("the answer is longer than {BYTES_MAX} bytes");
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}
