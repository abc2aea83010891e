//! The admin address of a program of its own: readiness, buses, and actions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use greenroom::{AdminToken, Readiness, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::{any_port, get as fetch, within};

const TOKEN: &str = "an-operator's-token";

#[tokio::test]
async fn the_application_says_when_it_is_ready() {
    within(async {
        let readiness = Readiness::default();
        readiness.set_not_ready("cache", "it is being filled");
        let builder = Server::builder().listen(any_port()).admin(any_port());
        let mut server = builder.readiness(&readiness).bind().unwrap();
        let admin = server.admin_address().unwrap().url().unwrap();
        let ready = || fetch(format!("{admin}/ready"));
        server.serve_admin();
        let (status, said) = ready().await;
        assert_eq!(status, 503);
        assert!(
            said.contains("starting") && said.contains("cache"),
            "{said}"
        );
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(Router::new()));
        let cache = "not ready: cache: it is being filled\n";
        while ready().await != (503.try_into().unwrap(), cache.to_owned()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(handle.status().not_ready, ["cache: it is being filled"]);
        readiness.set_ready("cache");
        assert_eq!(ready().await.1, "ready\n");
        handle.drain();
        serving.await.unwrap().unwrap();
    })
    .await;
}

#[cfg(feature = "bus")]
#[tokio::test]
async fn the_buses_of_a_program_are_shown() {
    within(async {
        let bus = greenroom::bus::Bus::in_process();
        let _subscription = bus.subscribe("/news").unwrap();
        let builder = Server::builder().listen(any_port()).admin(any_port());
        let mut server = builder.bus(&bus).bind().unwrap();
        server.serve_admin();
        assert_eq!(server.status().buses[0].subscriptions, 1);
        let admin = server.admin_address().unwrap().url().unwrap();
        let page = fetch(format!("{admin}/")).await.1;
        assert!(page.contains("<h3>in process</h3>"), "{page}");
    })
    .await;
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn the_clusters_of_a_program_are_shown() {
    within(async {
        let cluster = greenroom::cluster::Cluster::local();
        let builder = Server::builder().listen(any_port()).admin(any_port());
        let mut server = builder.cluster(&cluster).bind().unwrap();
        server.serve_admin();
        let node = cluster.node().to_string();
        assert_eq!(server.status().clusters[0].node, node);
        let admin = server.admin_address().unwrap().url().unwrap();
        let page = fetch(format!("{admin}/")).await.1;
        assert!(page.contains(&format!("<h3>Node {node}</h3>")), "{page}");
        let text = fetch(format!("{admin}/greenroom/status.txt")).await.1;
        assert!(text.contains(&node), "{text}");
    })
    .await;
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn entities_are_counted_in_the_metrics() {
    within(async {
        let cluster = greenroom::cluster::Cluster::local();
        let system = greenroom::actor::ActorSystem::new().unwrap();
        let hosting = cluster.host(&system, |_| Basket).unwrap();
        let builder = Server::builder().listen(any_port()).admin(any_port());
        let mut server = builder.cluster(&cluster).bind().unwrap();
        server.serve_admin();
        for name in ["a", "b", "a"] {
            let basket = cluster.entity::<Basket>(name).unwrap();
            basket.look().ask().await.unwrap();
        }
        let admin = server.admin_address().unwrap().url().unwrap();
        let metrics = fetch(format!("{admin}/greenroom/metrics")).await.1;
        for expected in [
            "\ngreenroom_cluster_disconnected 0\n",
            "\ngreenroom_cluster_entities{kind=\"basket\"} 2\n",
            "\ngreenroom_cluster_activations_total{kind=\"basket\"} 2\n",
            "\ngreenroom_cluster_activation_failures_total{kind=\"basket\"} 0\n",
        ] {
            assert!(metrics.contains(expected), "{expected} in {metrics}");
        }
        hosting.leave(std::time::Duration::from_secs(5)).await;
    })
    .await;
}

/// An entity without a state.
#[cfg(feature = "cluster")]
struct Basket;

#[cfg(feature = "cluster")]
impl greenroom::actor::Actor for Basket {}

#[cfg(feature = "cluster")]
impl greenroom::cluster::Entity for Basket {
    type State = ();
}

#[cfg(feature = "cluster")]
#[greenroom::actor::messages(remote = "basket.v1")]
impl Basket {
    /// Looks into it.
    #[message]
    fn look(&self) {}
}

#[tokio::test]
async fn a_program_has_actions_of_its_own() {
    within(async {
        let token = AdminToken::new(TOKEN).unwrap();
        let builder = Server::builder().listen(any_port()).admin(any_port());
        let mut server = builder.admin_token(token).bind().unwrap();
        let total = Arc::new(AtomicU32::new(0));
        let actions = server.admin_actions().unwrap();
        actions.add_with("add", "Number", "Adds a number", {
            let total = Arc::clone(&total);
            move |number| {
                let total = Arc::clone(&total);
                async move {
                    let number: u32 = number.parse().map_err(|_| "no number".to_owned())?;
                    let sum = total.fetch_add(number, Ordering::Relaxed) + number;
                    Ok(format!("the sum is {sum}"))
                }
            }
        });
        server.serve_admin();
        let admin = server.admin_address().unwrap().to_string();
        actions.add("empty-cache", "Empties", || async { Ok(String::new()) });
        actions.label("add", "Add a number");
        let page = fetch(format!("http://{admin}/")).await.1;
        for (name, label) in [
            ("add", "Add a number"),
            ("drain", "Drain"),
            ("empty-cache", "Empty cache"),
        ] {
            let button = format!("formaction=\"/greenroom/actions/{name}\">{label}</button>");
            assert!(page.contains(&button), "{page}");
        }
        assert!(page.contains("Adds a number"), "{page}");
        for (value, status, said) in [("2", 200, "the sum is 2"), ("x", 500, "no number")] {
            let response = post(&admin, "add", &format!("value={value}")).await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{response}"
            );
            assert!(response.ends_with(&format!("add: {said}\n")), "{response}");
        }
        assert_eq!(total.load(Ordering::Relaxed), 2);
    })
    .await;
}

async fn post(admin: &str, action: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    let request = format!(
        "POST /greenroom/actions/{action} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\
         Authorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}
