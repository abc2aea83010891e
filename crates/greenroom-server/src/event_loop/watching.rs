use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Builder;

use super::Loop;
use crate::app::{App, LoopWatch};

/// The hooks of a loop's runtime, which notify its watch once there is one: a runtime is built with
/// its hooks, and a watch begins within the runtime.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Arc<OnceLock<Arc<dyn LoopWatch>>>);

impl Hooks {
    pub(crate) fn install(&self, runtime: &mut Builder) {
        let (parks, unparks) = (self.clone(), self.clone());
        runtime
            .on_thread_park(move || parks.tell(LoopWatch::parks))
            .on_thread_unpark(move || unparks.tell(LoopWatch::unparks));
        #[cfg(tokio_unstable)]
        {
            let polls = self.clone();
            runtime.on_before_task_poll(move |task| {
                polls.tell(|watch| watch.task_begins(task.spawned_at()));
            });
        }
    }

    pub(crate) fn connect(&self, watch: &Arc<dyn LoopWatch>) {
        self.0.get_or_init(|| Arc::clone(watch));
    }

    fn tell(&self, what: impl FnOnce(&dyn LoopWatch)) {
        if let Some(watch) = self.0.get() {
            what(&**watch);
        }
    }
}

impl<A: App> Loop<A> {
    pub(crate) fn watch(&self) -> Option<&dyn LoopWatch> {
        self.meter.watch.as_deref()
    }

    /// Polls the future that serves a connection, and notifies the loop's watch.
    pub(crate) async fn within_connection<F: Future>(&self, serving: F) -> F::Output {
        let mut serving = pin!(serving);
        poll_fn(|cx| {
            let Some(watch) = self.watch() else {
                return serving.as_mut().poll(cx);
            };
            watch.connection_begins();
            let polled = serving.as_mut().poll(cx);
            watch.connection_ends();
            polled
        })
        .await
    }
}
