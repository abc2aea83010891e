use tokio::sync::watch;

/// An order to all workers of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Serve,
    /// Finish the requests that were begun, and end.
    Drain,
}

impl Order {
    /// Returns when the order to drain is given.
    pub(super) async fn drain(mut orders: watch::Receiver<Self>) {
        if orders
            .wait_for(|order| *order == Self::Drain)
            .await
            .is_err()
        {
            // The generation was dropped, and with it soon the task that waits here.
            std::future::pending::<()>().await;
        }
    }
}
