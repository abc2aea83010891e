//! Buckets that speak S3's protocol.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use url::Url;

use crate::cryptography;

/// The most retries of a request.
const RETRIES_MAX: usize = 2;
/// The longest time for a request up to its response's head, and between two parts of its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time for a response: the client who gets the file may be slow.
const RESPONSE_TIME_MAX: Duration = Duration::from_hours(1);

/// Opens the bucket of `s3://BUCKET/PREFIX`, as the `AWS_…` variables tell.
pub(super) fn open(url: &Url) -> anyhow::Result<Arc<dyn ObjectStore>> {
    open_with(url, AmazonS3Builder::from_env(), PATIENCE)
}

fn open_with(
    url: &Url,
    builder: AmazonS3Builder,
    patience: Duration,
) -> anyhow::Result<Arc<dyn ObjectStore>> {
    cryptography::provide();
    let bucket = url
        .host_str()
        .context("`files`: s3://BUCKET names no bucket")?;
    let mut builder = builder.with_bucket_name(bucket).with_retry(RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: patience,
        ..RetryConfig::default()
    });
    // One by one: all of a client's options at once would replace those of the variables.
    for (key, limit) in [
        (ClientConfigKey::ConnectTimeout, CONNECT_TIMEOUT),
        (ClientConfigKey::ReadTimeout, patience),
        (ClientConfigKey::Timeout, RESPONSE_TIME_MAX),
    ] {
        let limit = format!("{}ms", limit.as_millis());
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), limit);
    }
    let objects = builder
        .build()
        .context("`files`: the AWS_… variables do not tell how to reach the bucket")?;
    let prefix = ObjectPath::from(url.path());
    Ok(Arc::new(PrefixStore::new(objects, prefix)))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use axum::Router;
    use axum::body::{Body, Bytes};
    use futures_util::{StreamExt, stream};
    use object_store::ObjectStoreExt;
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::*;

    const PARTS: usize = 20;
    const PAUSE: Duration = Duration::from_millis(100);

    /// A bucket whose one object takes two seconds, or never comes to an end.
    async fn bucket(ends: bool) -> Arc<dyn ObjectStore> {
        let object = move || async move {
            let parts = stream::iter(0..PARTS).then(move |part| async move {
                if !ends && part == 1 {
                    pending::<()>().await;
                }
                sleep(PAUSE).await;
                Ok::<_, Infallible>(Bytes::from_static(b"slow"))
            });
            let head = [
                ("content-length", (4 * PARTS).to_string()),
                ("last-modified", "Fri, 27 Nov 2026 12:00:00 GMT".to_owned()),
                ("etag", "\"1\"".to_owned()),
            ];
            (head, Body::from_stream(parts))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let app = Router::new().fallback(object);
        tokio::spawn(async move { axum::serve(listener, app).await });
        let builder = AmazonS3Builder::new()
            .with_endpoint(format!("http://{address}"))
            .with_allow_http(true)
            .with_access_key_id("ada")
            .with_secret_access_key("secret");
        let url = Url::parse("s3://pictures/below").expect("it is one");
        open_with(&url, builder, Duration::from_secs(1)).expect("it is told")
    }

    #[tokio::test]
    async fn a_file_may_take_longer_than_its_bucket_may_be_silent() {
        let bucket = bucket(true).await;
        let file = bucket
            .get(&ObjectPath::from("a"))
            .await
            .expect("it is there");
        let content = file.bytes().await.expect("it is read to its end");
        assert_eq!(content, "slow".repeat(PARTS));
    }

    #[tokio::test]
    async fn a_bucket_that_falls_silent_is_not_waited_for() {
        let bucket = bucket(false).await;
        let file = bucket
            .get(&ObjectPath::from("a"))
            .await
            .expect("it is there");
        file.bytes().await.expect_err("the rest never comes");
    }
}
