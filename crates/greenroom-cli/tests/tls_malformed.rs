//! Malformed messages by tlslite-ng, which is what tlsfuzzer is made with: each gets the alert that
//! is right for it, or the end of its connection, and the server goes on.

mod outside;

use std::time::Duration;

use outside::http::assert_hello;
use outside::server::Server;
use outside::tools;

const DEADLINE: Duration = Duration::from_mins(5);

#[test]
fn malformed_messages_get_their_alerts() {
    let flags = ["--tls-self-signed", "--listen-plain", "127.0.0.1:0"];
    let mut server = Server::with_flags_listening_on(&flags, 1);
    send_all(&server);
    let baseline = server.descriptors_at_rest_beside(server.address_of(1));
    send_all(&server);
    server.await_descriptors(baseline);
    assert_hello(server.address_of(1));
    server.assert_sound();
}

fn send_all(server: &Server) {
    let mut client = tools::bounded(tools::installed("python/bin/python"), DEADLINE);
    client
        .arg("-B")
        .arg(tools::script("clients/tls/malformed.py"))
        .arg(server.address().ip().to_string())
        .arg(server.address().port().to_string());
    tools::run(&mut client).expect_success("malformed.py");
}
