use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::handshakes::connect;
use crate::http2_frames::{PREFACE, SETTINGS};
use crate::over::{client_config, tls};
use crate::rig::{Rig, app, text, within};

/// `SETTINGS_ENABLE_CONNECT_PROTOCOL`, set (RFC 8441, section 3).
const CONNECT_PROTOCOL: [u8; 6] = [0, 8, 0, 0, 0, 1];

/// Returns the settings that a server sends first.
async fn settings(server: &Rig) -> Vec<u8> {
    let mut config = client_config();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut stream = connect(server, &Arc::new(config)).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream
        .write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], SETTINGS);
    let mut settings = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
    stream.read_exact(&mut settings).await.unwrap();
    settings
}

#[tokio::test]
async fn browsers_open_websockets_over_http2_only_where_that_is_wanted() {
    within(async {
        for wanted in [false, true] {
            let handler = |_| async { Ok(text("")) };
            let server = Rig::with(app(handler), |builder| {
                builder.tls(tls().websockets_over_http2(wanted).build().unwrap())
            });
            let settings = settings(&server).await;
            let is_offered = settings
                .chunks(6)
                .any(|setting| setting == CONNECT_PROTOCOL);
            assert_eq!(is_offered, wanted);
        }
    })
    .await;
}
