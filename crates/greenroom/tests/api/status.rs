//! The status of two servers in one process: each shows its own.

use std::thread;

use axum::Router;
use axum::routing::get;
use greenroom::actor::ActorSystem;
use greenroom::{OnLoops, Placement, Server, Stage, Status};
use tokio::net::TcpStream;

use crate::rig::{Rig, any_port, get as fetch, within};

fn stage(name: &str) -> Stage {
    let stage = Stage::builder(name).threads(1..=1);
    stage.build().unwrap()
}

/// A router with a route of its own below `name`, placed on the stage.
fn placed(name: &str, stage: &Stage) -> Router {
    Router::new()
        .route(&format!("/{name}/placed"), get(|| async { "placed" }))
        .route_layer(Placement::on(stage))
        .route(&format!("/{name}/plain"), get(|| async { "plain" }))
        .route("/greenroom/status", get(greenroom::status_handler))
}

async fn visit(rig: &Rig, name: &str) {
    for path in ["placed", "plain"] {
        assert_eq!(fetch(rig.url(&format!("/{name}/{path}"))).await.1, path);
    }
}

fn has_route(status: &Status, path: &str) -> bool {
    status.routes.iter().any(|route| route.path == path)
}

fn has_stage(status: &Status, name: &str) -> bool {
    status.stages.iter().any(|stage| stage.name == name)
}

/// Returns the paths of the routes and the names of the stages of a status in JSON.
fn paths_and_stages(shown: &str) -> Vec<String> {
    let status: serde_json::Value = serde_json::from_str(shown).unwrap();
    let of = |list: &str, field: &str| {
        let listed = status[list].as_array().unwrap().iter();
        let listed = listed.map(|each| each[field].as_str().unwrap().to_owned());
        listed.collect::<Vec<_>>()
    };
    [of("routes", "path"), of("stages", "name")].concat()
}

fn connections(status: &Status) -> usize {
    status.loops.iter().map(|each| each.connections).sum()
}

#[tokio::test]
async fn each_of_two_servers_shows_its_own_routes_and_stages() {
    within(async {
        let stages = ["blue-stage", "green-stage"].map(stage);
        let blue = Rig::start(placed("blue", &stages[0]));
        let green = Rig::start(placed("green", &stages[1]));
        visit(&blue, "blue").await;
        visit(&green, "green").await;
        for (rig, ours, theirs) in [(&blue, "blue", "green"), (&green, "green", "blue")] {
            let status = rig.handle.status();
            for kind in ["placed", "plain"] {
                assert!(has_route(&status, &format!("/{ours}/{kind}")), "{ours}");
                assert!(!has_route(&status, &format!("/{theirs}/{kind}")), "{ours}");
            }
            assert!(has_stage(&status, &format!("{ours}-stage")));
            assert!(!has_stage(&status, &format!("{theirs}-stage")));
            assert!(has_stage(&status, "stage"), "the default stage is both's");
            let shown = fetch(rig.url("/greenroom/status")).await.1;
            let shown = paths_and_stages(&shown);
            assert!(shown.contains(&format!("/{ours}/placed")), "{shown:?}");
            assert!(shown.contains(&format!("{ours}-stage")), "{shown:?}");
            assert!(!shown.contains(&format!("/{theirs}/placed")), "{shown:?}");
            assert!(!shown.contains(&format!("/{theirs}/plain")), "{shown:?}");
            assert!(!shown.contains(&format!("{theirs}-stage")), "{shown:?}");
        }
        blue.end().await;
        green.end().await;
    })
    .await;
}

#[tokio::test]
async fn each_of_two_servers_shows_its_own_loops_and_connections() {
    within(async {
        let hello = || Router::new().route("/loops/hello", get(|| async { "hello" }));
        let blue = Rig::with_loops(1, Server::builder(), hello());
        let green = Rig::with_loops(3, Server::builder(), hello());
        blue.has_loops(1).await;
        green.has_loops(3).await;
        fetch(blue.url("/loops/hello")).await;
        fetch(green.url("/loops/hello")).await;
        let held = [
            TcpStream::connect(blue.address).await.unwrap(),
            TcpStream::connect(blue.address).await.unwrap(),
        ];
        for stream in &held {
            // Connections are accepted when their first bytes are there.
            stream.writable().await.unwrap();
            stream.try_write(b"GET ").unwrap();
        }
        while connections(&blue.handle.status()) < 2 {
            tokio::task::yield_now().await;
        }
        let names = |status: Status| {
            let loops = status.loops.into_iter();
            loops.map(|each| each.name).collect::<Vec<_>>()
        };
        assert_eq!(names(blue.handle.status()), ["loop-0"]);
        assert_eq!(names(green.handle.status()), ["loop-0", "loop-1", "loop-2"]);
        while connections(&green.handle.status()) > 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        let handle = blue.handle.clone();
        blue.end().await;
        assert_eq!(names(handle.status()), [""; 0], "it has ended");
        green.end().await;
    })
    .await;
}

/// One that no server uses is everybody's; one that both use is both's.
#[tokio::test]
async fn a_stage_is_shown_by_those_who_use_it() {
    within(async {
        let (submitted, unused) = (stage("submitted"), stage("unused"));
        let work = submitted.clone();
        let blue = Router::new().route(
            "/uses/stage",
            get(|| async move { work.run(|| "done").await.unwrap() }),
        );
        let hello = Router::new().route("/uses/nothing", get(|| async { "hello" }));
        let (blue, green) = (Rig::start(blue), Rig::start(hello));
        assert!(
            has_stage(&green.handle.status(), "submitted"),
            "not yet used"
        );
        assert_eq!(fetch(blue.url("/uses/stage")).await.1, "done");
        fetch(green.url("/uses/nothing")).await;
        assert!(has_stage(&blue.handle.status(), "submitted"));
        assert!(!has_stage(&green.handle.status(), "submitted"));

        let both = Router::new()
            .route("/uses/too", get(|| async { "too" }))
            .layer(Placement::on(&submitted));
        let third = Rig::start(both);
        assert_eq!(fetch(third.url("/uses/too")).await.1, "too");
        for (rig, shows) in [(&blue, true), (&green, false), (&third, true)] {
            let status = rig.handle.status();
            assert_eq!(has_stage(&status, "submitted"), shows);
            assert!(has_stage(&status, "unused"));
        }
        for rig in [blue, green, third] {
            rig.end().await;
        }
        drop(unused);
    })
    .await;
}

/// The inner placement finds its route on the stage of the outer one, far from the connection.
#[tokio::test]
async fn a_placement_within_a_placed_handler_is_its_servers() {
    within(async {
        let inner = Router::new()
            .route("/within/inner", get(|| async { thread_name() }))
            .layer(Placement::on(&stage("inner")));
        let blue = Rig::start(inner);
        let green = Rig::start(Router::new());
        fetch(green.url("/within/none")).await;
        let thread = fetch(blue.url("/within/inner")).await.1;
        assert!(thread.starts_with("inner-"), "{thread}");
        assert!(has_route(&blue.handle.status(), "/within/inner"));
        assert!(!has_route(&green.handle.status(), "/within/inner"));
        assert!(!has_stage(&green.handle.status(), "inner"));
        blue.end().await;
        green.end().await;
    })
    .await;
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_actor_system_is_shown_by_the_server_that_it_was_given_to() {
    within(async {
        let system = |name: &str| ActorSystem::builder().name(name).build().unwrap();
        let app = || Router::new().route("/actors", get(greenroom::status_handler));
        let blue = Server::builder().actors(system("blue-actors"));
        let green = Server::builder().actors(system("green-actors"));
        let (blue, green) = (Rig::with(blue, app()), Rig::with(green, app()));
        let free = system("nobody's-actors");
        let names = |status: Status| {
            let systems = status.actors.into_iter().map(|system| system.name);
            let ours = systems.filter(|name| name.ends_with("-actors"));
            ours.collect::<Vec<_>>()
        };
        assert_eq!(
            names(blue.handle.status()),
            ["blue-actors", "nobody's-actors"]
        );
        assert_eq!(
            names(green.handle.status()),
            ["green-actors", "nobody's-actors"]
        );
        let shown = fetch(blue.url("/actors")).await.1;
        assert!(shown.contains("blue-actors"), "{shown}");
        assert!(!shown.contains("green-actors"), "{shown}");
        blue.end().await;
        green.end().await;
        drop(free);
    })
    .await;
}

#[tokio::test]
async fn two_servers_on_one_thread_show_their_own() {
    let local = tokio::task::LocalSet::new();
    let test = within(async {
        let mut running = Vec::new();
        for name in ["blue", "green"] {
            let app = Router::new()
                .route(&format!("/local/{name}"), get(|| async { "here" }))
                .layer(Placement::inline());
            let server = Server::builder().loops(1.try_into().unwrap());
            let server = server.listen(any_port()).bind().unwrap();
            let url = server.local_addresses()[0].url().unwrap();
            let handle = server.handle();
            let serving = tokio::task::spawn_local(server.serve_local(app));
            assert_eq!(fetch(format!("{url}/local/{name}")).await.1, "here");
            running.push((handle, serving));
        }
        for (number, name, other) in [(0, "blue", "green"), (1, "green", "blue")] {
            let status = running[number].0.status();
            assert_eq!(status.loops.len(), 1, "it has responded");
            assert!(has_route(&status, &format!("/local/{name}")));
            assert!(!has_route(&status, &format!("/local/{other}")));
        }
        for (handle, serving) in running {
            handle.drain();
            serving.await.unwrap().unwrap();
        }
    });
    local.run_until(test).await;
}

#[tokio::test]
async fn what_stays_on_the_loops_has_the_status_too() {
    within(async {
        let app = Router::new().route("/on-loops", get(greenroom::status_handler));
        let rig = Rig::with_loops(2, Server::builder(), OnLoops(app));
        rig.has_loops(2).await;
        let shown = fetch(rig.url("/on-loops")).await.1;
        assert!(shown.contains("loop-1"), "{shown}");
        rig.end().await;
    })
    .await;
}

/// A loop counts on what it serves for as long as it runs.
#[tokio::test]
async fn what_a_server_has_used_goes_with_it() {
    within(async {
        let gone = stage("gone-stage");
        let rig = Rig::start(
            placed("gone", &gone).merge(
                Router::new()
                    .route("/gone/inline", get(|| async { "inline" }))
                    .layer(Placement::inline()),
            ),
        );
        drop(gone);
        let made = Router::new().route("/gone/made", get(|| async { "made" }));
        let made = Rig::start(made.into_make_service());
        for _ in 0..100 {
            visit(&rig, "gone").await;
            assert_eq!(fetch(rig.url("/gone/inline")).await.1, "inline");
            assert_eq!(fetch(made.url("/gone/made")).await.1, "made");
        }
        let is_known = || {
            let status = greenroom_stage::status();
            let mut paths = status.routes.iter().map(|route| &route.path);
            let mut names = status.stages.iter().map(|stage| &stage.name);
            paths.any(|path| path.starts_with("/gone/")) || names.any(|name| name == "gone-stage")
        };
        assert!(is_known());
        rig.end().await;
        made.end().await;
        // The threads of its loops end soon after it.
        while is_known() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[cfg(feature = "admin")]
#[tokio::test]
async fn each_admin_server_shows_the_server_that_it_belongs_to() {
    within(async {
        let mut running = Vec::new();
        for name in ["blue", "green"] {
            let path = format!("/admin/{name}");
            let app = Router::new().route(&path, get(|| async { "hello" }));
            let builder = Server::builder().listen(any_port()).admin(any_port());
            let server = builder.bind().unwrap();
            let url = server.local_addresses()[0].url().unwrap();
            let admin = server.admin_address().unwrap().url().unwrap();
            let handle = server.handle();
            let serving = tokio::spawn(server.serve(app));
            fetch(format!("{url}{path}")).await;
            running.push((admin, handle, serving));
        }
        for (number, ours, theirs) in [(0, "blue", "green"), (1, "green", "blue")] {
            let status = format!("{}/greenroom/status", running[number].0);
            // Twice, so that the status would show itself.
            fetch(status.clone()).await;
            let shown = paths_and_stages(&fetch(status).await.1);
            assert!(shown.contains(&format!("/admin/{ours}")), "{shown:?}");
            assert!(!shown.contains(&format!("/admin/{theirs}")), "{shown:?}");
            assert!(
                !shown.contains(&"/greenroom/status".to_owned()),
                "{shown:?}"
            );
        }
        for (_, handle, serving) in running {
            handle.drain();
            serving.await.unwrap().unwrap();
        }
    })
    .await;
}

#[cfg(feature = "psgi")]
#[tokio::test]
async fn each_of_two_servers_shows_the_perl_application_that_it_serves() {
    use greenroom::psgi::{Gateway, Mounts};

    within(async {
        let directory = tempfile::tempdir().unwrap();
        let mut gateways = Vec::new();
        for name in ["blue.psgi", "green.psgi", "nobodys.psgi"] {
            let file = directory.path().join(name);
            std::fs::write(&file, "sub { [200, [], ['hello']] }").unwrap();
            let gateway = Gateway::builder(file).workers(1);
            gateways.push(gateway.start().await.unwrap());
        }
        let blue = Rig::start(gateways[0].clone());
        let green = Rig::start(Mounts::new([gateways[1].clone()]));
        for (rig, ours, theirs) in [
            (&blue, "blue.psgi", "green.psgi"),
            (&green, "green.psgi", "blue.psgi"),
        ] {
            assert_eq!(fetch(rig.url("/")).await.1, "hello");
            let status = rig.handle.status();
            let shows = |name: &str| {
                let mut shown = status.psgi.iter();
                shown.any(|gateway| gateway.application.ends_with(name))
            };
            assert!(shows(ours) && !shows(theirs), "{:?}", status.psgi);
            assert!(shows("nobodys.psgi"), "{:?}", status.psgi);
        }
        blue.end().await;
        green.end().await;
        for gateway in gateways {
            gateway.shutdown().await;
        }
    })
    .await;
}

#[cfg(feature = "proxy")]
#[tokio::test]
async fn each_of_two_servers_shows_the_proxies_that_it_uses() {
    use greenroom::proxy::{Proxy, Settings};

    within(async {
        let proxies = ["blue", "green", "nobodys"].map(|name| {
            let upstream = format!("unix:/nowhere/{name}.sock").parse().unwrap();
            Proxy::new(Settings::new([upstream])).unwrap()
        });
        let rig = |proxy: &Proxy| Rig::start(Router::new().fallback_service(proxy.clone()));
        let (blue, green) = (rig(&proxies[0]), rig(&proxies[1]));
        for rig in [&blue, &green] {
            assert_eq!(fetch(rig.url("/")).await.0, 502);
        }
        for (rig, ours, theirs) in [(&blue, "blue", "green"), (&green, "green", "blue")] {
            let shown = rig.handle.status().proxies;
            let of = |name: &str| {
                let mut upstreams = shown.iter().flat_map(|proxy| &proxy.upstreams);
                upstreams.find(|upstream| upstream.address.contains(name))
            };
            assert!(of(theirs).is_none() && of("nobodys").is_some(), "{shown:?}");
            let failures = of(ours).unwrap().failures;
            assert!(failures.connect > 0, "{failures:?}");
        }
        blue.end().await;
        green.end().await;
    })
    .await;
}
