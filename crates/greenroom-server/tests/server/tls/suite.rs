//! The suite over TLS.

use std::process::Command;

use crate::over::OVER_TLS;

/// Tests of what is below TLS, or of a server that the test starts without it.
const WITHOUT_TLS: &[&str] = &[
    "acceptors::",
    "http3::",
    "listening::",
    "proxied::",
    "so_it_is_with_a_unix_socket",
    "tls::",
];

/// Tests that measure by how much of a Unix socket's room is free: the system frees what it was
/// given at once only as a whole, and records are given to it at other sizes than chunks.
const BY_ROOM: &[&str] = &[
    "a_client_that_reads_two_kilobytes_a_second_is_not_disconnected",
    "a_client_that_stops_reading_is_disconnected_30_s_later",
];

/// Tests that connect while the server accepts nobody, whom a handshake waits for; and one of 1,500
/// handshakes.
const WITHOUT_HANDSHAKES: &[&str] = &[
    "a_connection_that_makes_room_serves_the_request_that_is_there",
    "a_server_that_is_full_drains_too",
    "at_the_limit_requests_under_way_are_not_given_up_for_new_clients",
    "connections_that_wait_in_one_burst_are_spread_too",
    "of_1500_clients_that_pause_for_less_than_the_default_grace_none_loses_a_request",
    "of_a_burst_nobody_is_refused",
    "who_waits_to_be_accepted_for_too_long_is_refused",
];

#[test]
fn the_suite_holds_over_tls() {
    let mut suite = Command::new(std::env::current_exe().unwrap());
    suite.env(OVER_TLS, "1").arg("--quiet");
    for name in [WITHOUT_TLS, WITHOUT_HANDSHAKES, BY_ROOM].concat() {
        suite.args(["--skip", name]);
    }
    let ended = suite.output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{output}");
    assert!(output.contains(" passed; 0 failed;"), "{output}");
}
