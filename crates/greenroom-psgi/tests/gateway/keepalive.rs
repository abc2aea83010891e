//! Connections that are kept.

use futures_util::future::join_all;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::load::Client;
use crate::rig::{Rig, text, within};

/// The connections of each kind.
const CONNECTIONS: usize = 50;

/// The requests that are sent at once on one of them.
const PIPELINED: usize = 40;

const APP: &str = "sub { [200, [], [qq{<$_[0]{QUERY_STRING}>}]] }";

#[tokio::test]
async fn those_that_say_nothing_hold_no_worker() {
    within(async {
        let rig = Rig::serve(APP).await;
        let silent = join_all((0..CONNECTIONS).map(|_| rig.connect())).await;
        let mut kept: Vec<_> = (0..CONNECTIONS).map(|_| Client::new(&rig)).collect();
        for round in 0..3 {
            let path = format!("/?{round}");
            let asked = kept.iter_mut().map(|client| client.ask(Method::GET, &path));
            for response in join_all(asked).await {
                assert_eq!(text(&response), format!("<{round}>"));
            }
            for _ in 0..CONNECTIONS {
                assert_eq!(rig.get("/").await.status(), StatusCode::OK);
            }
        }
        for mut stream in silent {
            stream
                .write_all(b"GET /?late HTTP/1.0\r\n\r\n")
                .await
                .unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            assert!(response.ends_with("<late>"), "{response}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn requests_that_come_together_get_their_responses_in_order() {
    within(async {
        let rig = Rig::with(APP, |builder| builder.workers(2)).await;
        let connections = (0..4).map(|connection| pipelined(&rig, connection));
        join_all(connections).await;
        rig.end().await;
    })
    .await;
}

async fn pipelined(rig: &Rig, connection: usize) {
    let mut asked = Vec::new();
    let mut expected = Vec::new();
    for number in 0..PIPELINED {
        let name = format!("{connection}-{number}");
        let (method, length) = if number % 3 == 0 {
            ("POST", "Content-Length: 3\r\n")
        } else {
            ("GET", "")
        };
        let body = if number % 3 == 0 { "abc" } else { "" };
        let last = if number + 1 == PIPELINED {
            "Connection: close\r\n"
        } else {
            ""
        };
        asked.push(format!(
            "{method} /?{name} HTTP/1.1\r\nHost: a\r\n{length}{last}\r\n{body}"
        ));
        expected.push(format!("<{name}>"));
    }
    let responses = rig.exchange(asked.concat().as_bytes()).await;
    assert_eq!(responses.matches("HTTP/1.1 200 ").count(), PIPELINED);
    let said: Vec<_> = responses
        .lines()
        .filter_map(|line| {
            let end = line.rfind('>')?;
            Some(line[line.find('<')?..=end].to_owned())
        })
        .collect();
    assert_eq!(said, expected);
}
