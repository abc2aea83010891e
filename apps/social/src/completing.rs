//! Work that completes whether or not its caller stays.

use std::future::pending;
use std::panic::resume_unwind;

use tracing::Instrument;

/// Waits for `work`, which completes even if the caller is cancelled, as a handler is whose client
/// leaves.
///
/// # Panics
/// Panics if `work` does.
pub(crate) async fn complete<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let working = tokio::spawn(work.in_current_span());
    match working
        .await
        .map_err(tokio::task::JoinError::try_into_panic)
    {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        // It is aborted only with its runtime.
        Err(Err(_)) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_completes_though_its_caller_left() {
        let (go, gone) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let mut working = Box::pin(complete(async move {
            let went = gone.await;
            tell.send(went).expect("the test waits");
        }));
        assert!(futures_util::poll!(&mut working).is_pending());
        drop(working);
        go.send(5).expect("the work goes on");
        assert_eq!(told.await, Ok(Ok(5)));
    }

    #[tokio::test]
    #[should_panic(expected = "wrong")]
    async fn a_panic_of_the_work_is_its_callers() {
        complete(async { panic!("wrong") }).await;
    }
}
