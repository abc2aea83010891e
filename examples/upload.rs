//! An upload that goes to the disk as it comes, in bounded memory, and appears when it is whole.
//!
//! ```sh
//! cargo run -p greenroom-examples --bin upload -- 127.0.0.1:5000 /tmp/uploads
//! curl -T picture.jpg http://127.0.0.1:5000/files/picture.jpg
//! ```

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::put};
use futures_util::StreamExt;
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tower_http::limit::RequestBodyLimitLayer;

const UPLOAD_BYTES_MAX: usize = 64 << 20;

struct Uploads {
    folder: PathBuf,
    begun: AtomicU64,
}

async fn store(
    State(uploads): State<Arc<Uploads>>,
    Path(name): Path<String>,
    body: Body,
) -> Result<StatusCode, (StatusCode, String)> {
    // `%2e%2e%2f` is decoded when it comes here: a name is only what cannot leave the folder.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.len() > 100 || name.starts_with('.') || !name.bytes().all(allowed) {
        let why = "a name has at most 100 letters, digits, dots, `-` and `_`, no dot first\n";
        return Err((StatusCode::BAD_REQUEST, why.to_owned()));
    }
    // Two uploads of one name must not write into the same file.
    let number = uploads.begun.fetch_add(1, Ordering::Relaxed);
    let partial = uploads.folder.join(format!(".upload-{number}"));
    let stored = receive(body, &partial).await;
    if stored.is_err() {
        let _ = fs::remove_file(&partial).await;
    }
    stored?;
    // Readers see the old file or the new one, never half of one.
    let renamed = fs::rename(&partial, uploads.folder.join(name)).await;
    renamed.map_err(failed)?;
    Ok(StatusCode::CREATED)
}

/// Writes chunk after chunk. The client is read only as fast as the disk takes it; one that sends
/// less than 1 kB/s after its first 10 s is ended by the server (408), and this future dropped.
async fn receive(body: Body, partial: &FilePath) -> Result<(), (StatusCode, String)> {
    let mut file = File::create(partial).await.map_err(failed)?;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let too_long = |error: axum::Error| (StatusCode::PAYLOAD_TOO_LARGE, format!("{error}\n"));
        file.write_all(&chunk.map_err(too_long)?)
            .await
            .map_err(failed)?;
    }
    file.sync_all().await.map_err(failed)
}

fn failed(error: io::Error) -> (StatusCode, String) {
    eprintln!("an upload: {error}"); // for us; the client learns nothing of our disk
    drop(error);
    (StatusCode::INTERNAL_SERVER_ERROR, String::new())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:5000".to_owned());
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "uploads".to_owned()));
    fs::create_dir_all(&folder).await?;
    let uploads = Arc::new(Uploads {
        folder,
        begun: AtomicU64::new(0),
    });
    let app = Router::new()
        .route("/files/{name}", put(store))
        .layer(RequestBodyLimitLayer::new(UPLOAD_BYTES_MAX))
        .with_state(uploads);

    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    greenroom::serve(listener, app).await
}
