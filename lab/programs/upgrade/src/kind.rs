//! The kinds of clients.

use clap::ValueEnum;

use crate::load::Client;
use crate::{http1, http2, http3, transfer, websocket};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Keeps its connection, and pauses for up to 50 ms
    KeepAlive,
    /// Keeps its connection, and pauses for up to 2 s, as a browser
    Seldom,
    /// One request a connection
    Close,
    /// Posts 16 kB over a connection that it keeps
    Post,
    /// Over TLS; every second one with one request a connection
    Tls,
    /// Four streams at once over TLS, one of them a POST
    Http2,
    /// Every second one with one request a connection
    Http3,
    Http3Downloads,
    /// Echoes; it closes the connection after 20 to 30 s
    Websocket,
    /// 64 kB a second
    Uploads,
    /// 1 MB a second
    Downloads,
    /// GET and POST, of an application in Perl
    Psgi,
}

impl Kind {
    /// Returns the start of its figures' names.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().replace('-', "_"))
    }

    /// Returns the number of its clients.
    pub(crate) fn clients(self) -> usize {
        match self {
            Self::KeepAlive => 12,
            Self::Seldom => 24,
            Self::Tls | Self::Websocket => 6,
            Self::Close | Self::Post | Self::Http2 | Self::Http3 | Self::Psgi => 4,
            Self::Uploads | Self::Downloads | Self::Http3Downloads => 3,
        }
    }

    pub(crate) fn is_over_tls(self) -> bool {
        use Kind::{Http2, Http3, Http3Downloads, Tls};
        matches!(self, Tls | Http2 | Http3 | Http3Downloads)
    }

    /// Makes one client's part of the load, until the load ends.
    pub(crate) async fn run(self, client: &Client) {
        match self {
            Self::Http2 => http2::run(client).await,
            Self::Http3 => http3::run(client).await,
            Self::Http3Downloads => http3::downloads(client).await,
            Self::Websocket => websocket::run(client).await,
            Self::Uploads => {
                let upload = async || transfer::upload(client).await;
                client.transfers(upload).await;
            }
            Self::Downloads => {
                let download = async || transfer::download(client).await;
                client.transfers(download).await;
            }
            _ => http1::run(client).await,
        }
    }
}
