//! A flood and a polite client before one worker that blocks.

use std::net::IpAddr;
use std::time::Duration;

use greenroom_server::Server;
use http::{Method, StatusCode};

use crate::load::{Client, Load, until};
use crate::rig::{Rig, text, within};

/// The flood's connections, from 127.0.0.1.
const FLOOD: usize = 40;

/// The polite client's requests, from 127.0.0.2, one after the other.
const POLITE: usize = 10;

/// The limit of the flood's runs between two of the polite client, of 39 that wait: those that it
/// is owed because a run of the polite client was delayed by the machine.
const BETWEEN_MAX: usize = 9;

/// Notes the client of each run. A run of the flood takes 20 ms at least, and then lasts until
/// there is a permit for one or the file that ends it all.
const APP: &str = r#"
    use strict; use warnings;
    use Fcntl qw(O_WRONLY O_APPEND O_CREAT);
    my $base = $0;
    sub {
        my $name = shift->{QUERY_STRING};
        sysopen my $notes, "$base.notes", O_WRONLY | O_APPEND | O_CREAT or die "notes: $!";
        syswrite $notes, "$name\n";
        if ($name ne 'polite') {
            select undef, undef, undef, 0.02 until unlink("$base.permit") || -e "$base.end";
        }
        [200, [], ["$name $$"]];
    };
"#;

/// Lets the flood's runs end, one by one.
async fn permit_again_and_again(rig: &Rig) {
    loop {
        rig.source.write("app.psgi.permit", "");
        until(|| !rig.source.file("app.psgi.permit").exists()).await;
    }
}

#[tokio::test]
async fn a_flood_does_not_starve_a_polite_client_of_the_same_path() {
    within(async {
        let wait = Duration::from_mins(10);
        let rig = Rig::with(APP, |builder| builder.queue_wait_max(wait)).await;
        let queue_len = || rig.gateway.status().queue.queue_len;
        let flood = Load::start(&rig, FLOOD, "/page");
        let mut polite = Client::at(IpAddr::from([127, 0, 0, 2]), &rig);
        for _ in 0..POLITE {
            until(|| queue_len() == FLOOD - 1).await;
            let permits = async {
                until(|| queue_len() == FLOOD).await;
                permit_again_and_again(&rig).await;
            };
            let response = tokio::select! {
                response = polite.ask(Method::GET, "/page?polite") => response,
                () = permits => unreachable!("permits never end"),
            };
            assert_eq!(response.status(), StatusCode::OK);
        }
        rig.source.write("app.psgi.end", "");
        flood.end().await.assert_only(&[StatusCode::OK]);
        let notes = std::fs::read_to_string(rig.source.file("app.psgi.notes")).unwrap();
        let names: Vec<&str> = notes.lines().collect();
        let mut between: Vec<_> = names.split(|name| *name == "polite").collect();
        assert_eq!(between.len(), POLITE + 1);
        between.truncate(POLITE);
        let most = between.iter().map(|flood| flood.len()).max();
        assert!(most <= Some(BETWEEN_MAX), "{names:?}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_a_client_is_who_the_proxy_says() {
    within(async {
        let server = Server::builder().trusted_proxies("127.0.0.1".parse().unwrap());
        let told = r#"sub {
            my $env = shift;
            [200, [], ["$env->{REMOTE_ADDR} by ", $env->{'greenroom.proxy_addr'} // 'itself']]
        }"#;
        let rig = Rig::behind(server, told, |builder| builder).await;
        let asked = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
            X-Forwarded-For: 203.0.113.7\r\n\r\n";
        let response = rig.exchange(asked).await;
        assert!(response.ends_with("203.0.113.7 by 127.0.0.1"), "{response}");
        assert_eq!(text(&rig.get("/").await), "127.0.0.1 by 127.0.0.1");
        let shares = rig.gateway.status().queue.shares;
        let mut clients: Vec<_> = shares
            .iter()
            .map(|share| share.client.to_string())
            .collect();
        clients.sort();
        clients.dedup();
        assert_eq!(clients, ["127.0.0.1", "203.0.113.7"]);
        rig.end().await;
    })
    .await;
}
