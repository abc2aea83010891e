//! Server-sent events.

use std::time::Duration;

use axum::response::sse::Event;
use greenroom_actor::web::{Outbox, SlowReader, SseSettings, sse, sse_until};
use greenroom_actor::{Actor, ActorSystem, Backoff, BoxError, Context, Directive, Supervision};
use http_body_util::BodyExt;

use crate::client::{Stream, number};
use crate::rig::{Rig, Settings, within};
use crate::session::{Do, Session};

fn outbox(messages: usize, slow_reader: SlowReader) -> Settings {
    Settings {
        sse: SseSettings::default()
            .outbox(messages)
            .slow_reader(slow_reader),
        ..Settings::default()
    }
}

/// Sends a command to all actors.
fn tell(rig: &Rig, command: &'static str) {
    assert_eq!(rig.system.events().publish(Do(command)), 1);
}

#[tokio::test]
async fn events_reach_the_client_and_a_stop_ends_the_stream() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut stream = Stream::open(&mut rig).await;
        tell(&rig, "hello");
        assert_eq!(stream.hears_data().await, "1 hello");
        tell(&rig, "stop");
        assert_eq!(stream.hears_data().await, "bye");
        assert!(stream.hears().await.is_none(), "the body ends as it should");
        assert_eq!(rig.hears().await, "hello");
        assert_eq!(rig.hears().await, "stopped");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn the_actor_stops_when_the_client_leaves() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let stream = Stream::open(&mut rig).await;
        drop(stream);
        assert_eq!(rig.hears().await, "stopped");
    })
    .await;
}

#[tokio::test]
async fn the_actor_stops_when_the_response_is_dropped_unsent() {
    within(async {
        let system = ActorSystem::new().unwrap();
        let (says, mut said) = tokio::sync::mpsc::unbounded_channel();
        let session = move |outbox| Session {
            outbox,
            says: says.clone(),
            handled: 0,
        };
        let response = sse(&system, &SseSettings::default(), session);
        assert!(said.recv().await.unwrap().starts_with("started on"));
        drop(response);
        assert_eq!(said.recv().await.unwrap(), "stopped");
    })
    .await;
}

/// Has the first word and the last.
struct Talker(Outbox<Event>);

impl Actor for Talker {
    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.0.tell(Event::default().data("hello"))?;
        Ok(())
    }

    async fn stopped(&mut self, _: &mut Context<Self>) {
        self.0.tell(Event::default().data("bye")).unwrap();
    }
}

#[tokio::test]
async fn a_stream_ends_when_it_is_told_to_and_its_actor_has_the_last_word() {
    within(async {
        let system = ActorSystem::new().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let ended = async { ended.await.unwrap() };
        let response = sse_until(&system, &SseSettings::default(), ended, Talker);
        let mut body = response.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "data: hello\n\n");
        end.send(()).unwrap();
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!(rest, "data: bye\n\n");
    })
    .await;
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_by_comments() {
    within(async {
        let mut rig = Rig::start(Settings {
            sse: SseSettings::default().keep_alive(Duration::from_millis(20)),
            ..Settings::default()
        })
        .await;
        let mut stream = Stream::open(&mut rig).await;
        for _ in 0..3 {
            assert_eq!(stream.hears().await.unwrap().unwrap(), ":");
        }
        tell(&rig, "stop");
        while stream.hears().await.is_some() {}
    })
    .await;
}

#[tokio::test]
async fn a_restart_does_not_end_the_stream() {
    within(async {
        let supervision = Supervision::one_for_one().backoff(Backoff::NONE);
        let mut rig = Rig::start(Settings {
            system: ActorSystem::builder().supervision(supervision),
            ..Settings::default()
        })
        .await;
        let mut stream = Stream::open(&mut rig).await;
        tell(&rig, "panic");
        assert_eq!(rig.hears().await, "restarted");
        tell(&rig, "hello");
        assert_eq!(stream.hears_data().await, "1 hello");
    })
    .await;
}

#[tokio::test]
async fn a_failure_for_good_breaks_the_response_off() {
    within(async {
        let supervision = Supervision::one_for_one().always(Directive::Stop);
        let mut rig = Rig::start(Settings {
            system: ActorSystem::builder().supervision(supervision),
            ..Settings::default()
        })
        .await;
        let mut stream = Stream::open(&mut rig).await;
        tell(&rig, "hello");
        assert_eq!(stream.hears_data().await, "1 hello");
        tell(&rig, "panic");
        assert!(stream.hears().await.unwrap().is_err());
    })
    .await;
}

#[tokio::test]
async fn the_oldest_are_dropped() {
    within(async {
        let mut rig = Rig::start(outbox(4, SlowReader::DropOldest)).await;
        let mut stream = Stream::open(&mut rig).await;
        tell(&rig, "flood");
        assert_eq!(rig.hears().await, "dropping");
        let mut lines = Vec::new();
        loop {
            let data = stream.hears_data().await;
            if data == "last" {
                break;
            }
            lines.extend(number(&data));
        }
        assert!(lines.is_sorted());
        assert!(lines[lines.len() - 1] + 1 > u32::try_from(lines.len()).unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_slow_reader_is_broken_off_and_its_actor_stopped_at_once() {
    within(async {
        let mut rig = Rig::start(outbox(4, SlowReader::Close)).await;
        let mut stream = Stream::open(&mut rig).await;
        tell(&rig, "flood");
        assert_eq!(rig.hears().await, "refused");
        assert_eq!(rig.hears().await, "stopped");
        let mut expected = 0;
        while let Ok(event) = stream.hears().await.expect("not ended as it should") {
            let data = event.strip_prefix("data: ").unwrap();
            assert_eq!(number(data), Some(expected));
            expected += 1;
        }
        assert!(expected > 4);
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_ends_the_streams_and_lets_the_server_drain() {
    within(async {
        let mut rig = Rig::start(Settings::default()).await;
        let mut streams = Vec::new();
        for _ in 0..5 {
            streams.push(Stream::open(&mut rig).await);
        }
        let report = rig.system.shutdown(Duration::from_secs(30)).await;
        assert!(report.is_clean(), "{report:?}");
        for mut stream in streams {
            assert!(stream.hears().await.is_none());
        }
        rig.end().await;
    })
    .await;
}
