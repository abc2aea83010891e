//! Spans of what clients say, if the request that opened the connection is sampled.

use std::sync::Mutex;

use greenroom_timing::{FinishedSpan, Span, SpanLink, SpanObserver};

use crate::client::Client;
use crate::rig::{Rig, Settings, within};

#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Vec<FinishedSpan>>);

impl SpanObserver for Kept {
    fn on_span(&self, span: FinishedSpan) {
        self.0.lock().unwrap().push(span);
    }

    fn on_omitted(&self) {}
}

#[tokio::test]
async fn each_message_of_a_client_begins_a_trace_that_is_linked_to_the_request() {
    within(async {
        let kept = std::sync::Arc::new(Kept::default());
        let mut rig = Rig::start(Settings {
            opened_by: Some(Span::of_request(
                7,
                9,
                None,
                std::sync::Arc::clone(&kept) as _,
            )),
            ..Settings::default()
        })
        .await;
        let mut client = Client::open(&mut rig).await;
        client.say("hello").await;
        assert_eq!(client.hears_text().await, "1 hello");
        client.say("again").await;
        assert_eq!(client.hears_text().await, "2 again");
        drop(client);
        // The last span ends before the actor does.
        while rig.hears().await != "stopped" {}
        let spans = kept.0.lock().unwrap();
        let of = |name: &str| {
            spans
                .iter()
                .filter(|span| span.name.starts_with(name))
                .collect::<Vec<_>>()
        };
        let (messages, handled) = (of("websocket message"), of("handle Session"));
        assert_eq!((messages.len(), handled.len()), (2, 2), "{spans:?}");
        for (message, handled) in messages.iter().zip(handled) {
            let link = SpanLink {
                trace_id: 7,
                span_id: 9,
            };
            assert_eq!((message.parent_id, message.link), (None, Some(link)));
            assert_eq!(handled.parent_id, Some(message.span_id));
            assert_eq!((handled.trace_id, handled.link), (message.trace_id, None));
        }
        assert_ne!(messages[0].trace_id, messages[1].trace_id);
    })
    .await;
}
