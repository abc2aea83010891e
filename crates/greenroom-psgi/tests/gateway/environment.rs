//! The environment that an application gets with a request.

use crate::rig::{Rig, text, within};

/// Responds with its environment, a line for each string of it.
pub(crate) const APP: &str = r#"
    sub {
        my $env = shift;
        [200, [], [map { "$_=$env->{$_}\n" } grep { !ref $env->{$_} } sort keys %$env]];
    };
"#;

async fn told(rig: &Rig, request: &str) -> String {
    let response = rig.exchange(request.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    response
}

#[tokio::test]
async fn the_environment_is_that_of_psgi() {
    within(async {
        let rig = Rig::serve(APP).await;
        let told = told(
            &rig,
            "POST /a%20b?c=d HTTP/1.1\r\nHost: example.org\r\nContent-Type: text/x\r\n\
             Content-Length: 3\r\nConnection: close\r\n\r\nabc",
        )
        .await;
        for line in [
            "REQUEST_METHOD=POST",
            "SCRIPT_NAME=",
            "PATH_INFO=/a b",
            "REQUEST_URI=/a%20b?c=d",
            "QUERY_STRING=c=d",
            "SERVER_NAME=127.0.0.1",
            &format!("SERVER_PORT={}", rig.address.port()),
            "SERVER_PROTOCOL=HTTP/1.1",
            "REMOTE_ADDR=127.0.0.1",
            "CONTENT_LENGTH=3",
            "CONTENT_TYPE=text/x",
            "HTTP_HOST=example.org",
            "psgi.url_scheme=http",
            "psgi.multithread=",
            "psgi.multiprocess=",
            "psgi.run_once=",
            "psgi.streaming=1",
            "psgi.nonblocking=",
            "psgix.input.buffered=1",
            "psgix.harakiri=1",
            "psgix.cleanup=1",
        ] {
            assert!(
                told.contains(&format!("\n{line}\n")),
                "{line} is missing: {told}"
            );
        }
        for name in ["HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE"] {
            assert!(!told.contains(name), "{told}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_of_no_bytes_has_a_length_where_the_client_told_it() {
    within(async {
        let rig = Rig::serve(APP).await;
        for (field, is_told) in [("Content-Length: 0\r\n", true), ("", false)] {
            let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{field}Connection: close\r\n\r\n");
            let told = told(&rig, &request).await;
            assert_eq!(told.contains("\nCONTENT_LENGTH=0\n"), is_told, "{told}");
            assert_eq!(told.contains("CONTENT_LENGTH"), is_told, "{told}");
        }
        rig.end().await;
    })
    .await;
}

/// Bytes, as PSGI defines them: the application decodes them if it wants to.
#[tokio::test]
async fn a_target_of_raw_utf_8_is_told_byte_for_byte() {
    within(async {
        let rig = Rig::serve(APP).await;
        let request =
            "GET /caf\u{e9}/%C3%A9?q=\u{e9} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let told = told(&rig, request).await;
        for line in [
            "REQUEST_URI=/caf\u{e9}/%C3%A9?q=\u{e9}",
            "PATH_INFO=/caf\u{e9}/\u{e9}",
            "QUERY_STRING=q=\u{e9}",
        ] {
            assert!(told.contains(&format!("\n{line}\n")), "{line}: {told}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn connect_never_reaches_an_application() {
    within(async {
        let rig = Rig::serve(APP).await;
        let request = "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n";
        let response = rig.exchange(request.as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 501 "), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn nothing_is_smuggled_past_the_front() {
    within(async {
        let rig = Rig::serve(APP).await;
        let told = told(
            &rig,
            "GET / HTTP/1.1\r\nHost: a\r\nX_Real_IP: evil\r\nX-Real-IP: good\r\n\
             Proxy: http://evil\r\nConnection: close\r\n\r\n",
        )
        .await;
        assert!(
            told.contains("HTTP_X_REAL_IP=good\n") && !told.contains("evil"),
            "{told}"
        );
        for (request, status) in [
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                400,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\
                 Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400,
            ),
            (
                "GET /a%00b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                400,
            ),
        ] {
            let response = rig.exchange(request.as_bytes()).await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}: {response}"
            );
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_mounted_application_sees_where_it_is() {
    within(async {
        let rig = Rig::with(APP, |builder| builder.mount("/shop")).await;
        let told = text(&rig.get("/shop/cart").await);
        assert!(
            told.contains("SCRIPT_NAME=/shop\n") && told.contains("PATH_INFO=/cart\n"),
            "{told}"
        );
        assert_eq!(rig.get("/").await.status(), 404);
        assert_eq!(rig.get("/shopping").await.status(), 404);
        rig.end().await;
    })
    .await;
}
