//! Payloads as JSON.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Message, Topic};

/// A payload that could not be read as JSON of the type asked for, or a value that has no JSON.
#[derive(Debug, thiserror::Error)]
#[error("{what} `{topic}` as JSON of type {type_name}: {source}")]
pub struct JsonError {
    what: &'static str,
    topic: Topic,
    type_name: &'static str,
    source: serde_json::Error,
}

impl Message {
    /// Reads the payload as JSON.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let bus = greenroom_bus::Bus::in_process();
    /// let mut likes = bus.subscribe("/picture/*/likes")?;
    /// bus.publish_json("/picture/42/likes", &("ada", 7)).await?;
    /// if let Some(greenroom_bus::Event::Message(message)) = likes.recv().await {
    ///     let (name, count): (String, u32) = message.json()?;
    ///     assert_eq!((name.as_str(), count), ("ada", 7));
    /// }
    /// # Ok(())
    /// # }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If the payload is not JSON, or not of this type. The error names the topic, the type, and
    /// the fault with its line and column.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_slice(self.payload()).map_err(|source| JsonError {
            what: "cannot read a message on",
            topic: self.topic().clone(),
            type_name: std::any::type_name::<T>(),
            source,
        })
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(topic: &Topic, value: &T) -> Result<Bytes, JsonError> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Ok(bytes.into()),
        Err(source) => Err(JsonError {
            what: "cannot write a message for",
            topic: topic.clone(),
            type_name: std::any::type_name::<T>(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_topic_type_and_place() {
        let topic = Topic::new("/a").expect("a topic");
        let message = Message::new(topic, Bytes::from_static(b"[1, x]"));
        let error = message.json::<Vec<u8>>().expect_err("no JSON").to_string();
        assert!(
            error.contains("`/a` as JSON of type alloc::vec::Vec<u8>"),
            "{error}"
        );
        assert!(error.contains("line 1 column 5"), "{error}");
    }
}
