use std::fs;
use std::io;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use super::files::type_of;
use crate::config::RespondTable;

/// A response that is always the same.
#[derive(Clone, Debug)]
pub(super) struct Respond {
    status: StatusCode,
    body: Bytes,
    content_type: HeaderValue,
}

impl Respond {
    /// Reads the file, if there is one.
    pub(super) fn new(table: &RespondTable) -> io::Result<Self> {
        let (body, guessed) = match (&table.file, &table.body) {
            (Some(file), _) => (fs::read(&file.value.0)?.into(), type_of(&file.value.0)),
            (None, text) => {
                let plain = HeaderValue::from_static("text/plain; charset=utf-8");
                let text = text.as_ref().map(|text| text.value.clone());
                (text.unwrap_or_default().into(), plain)
            }
        };
        let said = table.content_type.as_ref();
        let said = said.and_then(|said| HeaderValue::from_str(&said.value).ok());
        let status = u16::try_from(table.status.0).ok();
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        Ok(Self {
            status: status.unwrap_or(StatusCode::OK),
            body,
            content_type: said.unwrap_or(guessed),
        })
    }

    pub(super) fn respond(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = self.status;
        // These have no content (RFC 9110, sections 15.3.5 and 15.4.5).
        if self.status != StatusCode::NO_CONTENT && !self.body.is_empty() {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, self.content_type.clone());
        }
        response
    }
}
