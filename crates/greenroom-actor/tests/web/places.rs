//! The dispatcher of a connection's actor.

use greenroom_actor::web::{SseSettings, WebSocketSettings};
use greenroom_actor::{ActorSystem, Dispatcher};
use tokio_tungstenite::tungstenite::Error;

use crate::client::{Client, get};
use crate::rig::{Rig, Settings, within};

fn settings(dispatcher: &str) -> Settings {
    let system = ActorSystem::builder()
        .dispatcher("default", Dispatcher::pool(1))
        .dispatcher("sockets", Dispatcher::pool(1));
    Settings {
        system,
        websocket: WebSocketSettings::default().dispatcher(dispatcher),
        sse: SseSettings::default().dispatcher(dispatcher),
        opened_by: None,
    }
}

#[tokio::test]
async fn without_a_loop_it_is_the_default_dispatcher() {
    within(async {
        let settings = Settings {
            system: settings("").system,
            ..Settings::default()
        };
        let mut rig = Rig::start(settings).await;
        let _client = Client::ask(&rig).await.unwrap();
        assert_eq!(rig.hears_start().await, "default-0");
        let _stream = get(&rig).await;
        assert_eq!(rig.hears_start().await, "default-0");
    })
    .await;
}

#[tokio::test]
async fn with_a_loop_it_is_the_thread_of_the_connection() {
    within(async {
        let system = settings("").system;
        let settings = Settings {
            system: system.dispatcher("loop", Dispatcher::on_loop()),
            ..Settings::default()
        };
        let mut rig = Rig::start(settings).await;
        let thread = std::thread::current();
        let _client = Client::ask(&rig).await.unwrap();
        assert_eq!(Some(&*rig.hears_start().await), thread.name());
        let _stream = get(&rig).await;
        assert_eq!(Some(&*rig.hears_start().await), thread.name());
    })
    .await;
}

#[tokio::test]
async fn the_settings_may_name_another() {
    within(async {
        let mut rig = Rig::start(settings("sockets")).await;
        let mut client = Client::ask(&rig).await.unwrap();
        assert_eq!(rig.hears_start().await, "sockets-0");
        client.say("stop").await;
        assert_eq!(client.hears_text().await, "bye");
        assert_eq!(client.hears_close().await.0, 1000);
        assert_eq!(rig.hears().await, "stopped");
        let _stream = get(&rig).await;
        assert_eq!(rig.hears_start().await, "sockets-0");
    })
    .await;
}

#[tokio::test]
async fn one_that_does_not_exist_is_an_internal_error() {
    within(async {
        let rig = Rig::start(settings("nowhere")).await;
        let Err(Error::Http(response)) = Client::ask(&rig).await else {
            panic!("the connection is refused");
        };
        assert_eq!(response.status(), 500);
        assert_eq!(get(&rig).await.status(), 500);
    })
    .await;
}
