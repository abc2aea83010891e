use std::pin::Pin;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};

use super::Stage;
use super::priority::Priority;
use crate::client::Client;
use crate::placement::outer;

/// An axum handler made from a synchronous function: see [`Stage::handler`].
#[derive(Clone, Debug)]
pub struct OnStage<F> {
    stage: Stage,
    function: F,
    priority: Priority,
}

impl<F> OnStage<F> {
    pub(super) fn new(stage: Stage, function: F) -> Self {
        let priority = Priority::Normal;
        Self {
            stage,
            function,
            priority,
        }
    }

    /// Sets the priority of its runs, which decides when they are shed.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    async fn respond<R>(self, client: Client, run: impl FnOnce(F) -> R + Send + 'static) -> Response
    where
        F: Send + 'static,
        R: IntoResponse,
    {
        let function = self.function;
        let run = async move { run(function).into_response() };
        let spawned = client.within_if_another(|| self.stage.spawn_as(self.priority, run));
        match spawned.await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        }
    }
}

impl<F, R, S> Handler<((),), S> for OnStage<F>
where
    F: FnOnce() -> R + Clone + Send + Sync + 'static,
    R: IntoResponse + 'static,
    S: Send + Sync + 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, _state: S) -> Self::Future {
        outer::yield_to_inner();
        let client = Client::connected(request.extensions());
        Box::pin(self.respond(client, |function| function()))
    }
}

macro_rules! impl_handler {
    ([$($part:ident),*], $last:ident) => {
        impl<F, R, S, M, $($part,)* $last> Handler<(M, $($part,)* $last,), S> for OnStage<F>
        where
            F: FnOnce($($part,)* $last) -> R + Clone + Send + Sync + 'static,
            R: IntoResponse + 'static,
            S: Send + Sync + 'static,
            $($part: FromRequestParts<S> + Send + 'static,)*
            $last: FromRequest<S, M> + Send + 'static,
        {
            type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

            #[allow(non_snake_case, unused_mut, reason = "as many arguments as there are types")]
            fn call(self, request: Request, state: S) -> Self::Future {
                outer::yield_to_inner();
                let client = Client::connected(request.extensions());
                Box::pin(async move {
                    let admitted = client
                        .within_if_another(|| self.stage.would_admit(self.priority));
                    if let Err(rejected) = admitted {
                        return rejected.into_response();
                    }
                    let (mut parts, body) = request.into_parts();
                    $(
                        let $part = match $part::from_request_parts(&mut parts, &state).await {
                            Ok(part) => part,
                            Err(rejection) => return rejection.into_response(),
                        };
                    )*
                    let request = Request::from_parts(parts, body);
                    let $last = match $last::from_request(request, &state).await {
                        Ok(last) => last,
                        Err(rejection) => return rejection.into_response(),
                    };
                    self.respond(client, move |function| function($($part,)* $last)).await
                })
            }
        }
    };
}

impl_handler!([], T1);
impl_handler!([T1], T2);
impl_handler!([T1, T2], T3);
impl_handler!([T1, T2, T3], T4);
impl_handler!([T1, T2, T3, T4], T5);
impl_handler!([T1, T2, T3, T4, T5], T6);
impl_handler!([T1, T2, T3, T4, T5, T6], T7);
impl_handler!([T1, T2, T3, T4, T5, T6, T7], T8);
