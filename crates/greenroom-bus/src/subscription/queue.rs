use std::collections::VecDeque;
use std::task::Waker;

use parking_lot::Mutex;

use crate::{Event, Message};

use super::lost::Lost;
use super::offer::Offer;
use super::{End, Overflow, QueueSettings};

/// A bounded queue with any number of writers, who never wait, and one reader.
pub(super) struct Queue {
    settings: QueueSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The loss before the first item, which is never a gap itself.
    lost: Lost,
    items: VecDeque<Item>,
    messages: usize,
    /// The reader to wake. There is one only if it found nothing.
    reader: Option<Waker>,
    end: Option<End>,
}

enum Item {
    Message(Message),
    Gap(Lost),
}

/// The result of taking from the queue.
pub(super) enum Taken {
    Event(Event),
    Nothing,
    End,
}

impl Queue {
    pub(super) fn new(settings: QueueSettings) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    pub(super) fn offer(&self, message: &Message) -> Offer {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return Offer::Gone;
        }
        let (mut offer, mut oldest) = (Offer::Taken, None);
        if state.messages == self.settings.events_max.get() {
            (offer, oldest) = state.overflow(self.settings.overflow);
        }
        if matches!(offer, Offer::Taken | Offer::DroppedOldest) {
            state.messages += 1;
            state.items.push_back(Item::Message(message.clone()));
        }
        let reader = state.reader.take();
        drop(state);
        // Its payload may have a destructor of its own.
        drop(oldest);
        wake(reader);
        offer
    }

    pub(super) fn reconnected(&self) {
        let mut state = self.state.lock();
        state.push_gap(Lost::RECONNECTED);
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Takes no more messages. Queued ones can still be taken out.
    pub(super) fn end(&self, end: End) {
        let mut state = self.state.lock();
        state.end.get_or_insert(end);
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    pub(super) fn ended(&self) -> Option<End> {
        self.state.lock().end
    }

    /// Takes the next event. If there is none now, `reader` is woken by the next.
    pub(super) fn take(&self, reader: &Waker) -> Taken {
        if let Some(taken) = self.state.lock().look(reader) {
            return taken;
        }
        // A waker is the user's code: it is cloned, and another dropped, outside of the lock. An
        // event may have come meanwhile.
        let mut reader = Some(reader.clone());
        let mut state = self.state.lock();
        let taken = match (state.pop(), state.end) {
            (Some(event), _) => Taken::Event(event),
            (None, Some(_)) => Taken::End,
            (None, None) => {
                std::mem::swap(&mut state.reader, &mut reader);
                Taken::Nothing
            }
        };
        drop(state);
        drop(reader);
        taken
    }

    pub(super) fn try_take(&self) -> Taken {
        let mut state = self.state.lock();
        match (state.pop(), state.end) {
            (Some(event), _) => Taken::Event(event),
            (None, Some(_)) => Taken::End,
            (None, None) => Taken::Nothing,
        }
    }

    /// Frees the events that nobody will take any more.
    pub(super) fn discard(&self) {
        let items = {
            let mut state = self.state.lock();
            state.messages = 0;
            std::mem::take(&mut state.items)
        };
        drop(items);
    }
}

impl State {
    /// Takes an event or the end; `None` if there is neither and this reader is not yet known.
    fn look(&mut self, reader: &Waker) -> Option<Taken> {
        if let Some(event) = self.pop() {
            return Some(Taken::Event(event));
        }
        if self.end.is_some() {
            return Some(Taken::End);
        }
        let known = self.reader.as_ref()?;
        known.will_wake(reader).then_some(Taken::Nothing)
    }

    /// Makes room as the policy says. Returns the outcome of the newest message, and the oldest one
    /// if it was dropped.
    fn overflow(&mut self, overflow: Overflow) -> (Offer, Option<Message>) {
        match overflow {
            Overflow::DropOldest => {
                let oldest = self.pop_message();
                self.lost.add(Lost::ONE);
                (Offer::DroppedOldest, oldest)
            }
            Overflow::DropNewest => {
                self.push_gap(Lost::ONE);
                (Offer::DroppedNewest, None)
            }
            Overflow::Close => {
                self.end = Some(End::Overflow);
                (Offer::Gone, None)
            }
        }
    }

    /// Adds a gap. Gaps side by side become one, so there are never more of them than messages.
    fn push_gap(&mut self, lost: Lost) {
        match self.items.back_mut() {
            None => self.lost.add(lost),
            Some(Item::Gap(gap)) => gap.add(lost),
            Some(Item::Message(_)) => self.items.push_back(Item::Gap(lost)),
        }
    }

    fn pop(&mut self) -> Option<Event> {
        match self.lost.take() {
            Some(gap) => Some(gap),
            None => self.pop_message().map(Event::Message),
        }
    }

    fn pop_message(&mut self) -> Option<Message> {
        let Some(Item::Message(message)) = self.items.pop_front() else {
            return None;
        };
        self.messages -= 1;
        if let Some(Item::Gap(lost)) = self.items.front() {
            self.lost.add(*lost);
            self.items.pop_front();
        }
        Some(message)
    }
}

/// Wakes the reader. Called outside of the lock, as a waker may run anything.
fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{GapCause, Topic};

    fn queue(events_max: usize, overflow: Overflow) -> Queue {
        let events_max = events_max.try_into().expect("not zero");
        Queue::new(
            QueueSettings::default()
                .events_max(events_max)
                .overflow(overflow),
        )
    }

    fn message(number: u8) -> Message {
        let topic = Topic::new("/a").expect("a topic");
        Message::new(topic, Bytes::copy_from_slice(&[number]))
    }

    /// Returns the numbers of the queued messages; gaps as "+3" or, of unknown size, "?".
    fn drain(queue: &Queue) -> String {
        let mut seen = Vec::new();
        while let Taken::Event(event) = queue.try_take() {
            seen.push(match event {
                Event::Message(message) => message.payload()[0].to_string(),
                Event::Gap {
                    missed: None,
                    cause: GapCause::Reconnected,
                } => "?".to_owned(),
                Event::Gap { missed, .. } => format!("+{}", missed.expect("counted")),
            });
        }
        seen.join(" ")
    }

    fn offer(queue: &Queue, numbers: std::ops::Range<u8>) {
        for number in numbers {
            queue.offer(&message(number));
        }
    }

    #[test]
    fn the_oldest_goes_and_the_gap_comes_first() {
        let queue = queue(3, Overflow::DropOldest);
        offer(&queue, 0..5);
        assert_eq!(drain(&queue), "+2 2 3 4");
        offer(&queue, 5..7);
        assert_eq!(drain(&queue), "5 6");
    }

    #[test]
    fn the_newest_goes_and_the_gap_comes_last() {
        let queue = queue(2, Overflow::DropNewest);
        offer(&queue, 0..5);
        assert_eq!(drain(&queue), "0 1 +3");
        offer(&queue, 5..6);
        assert_eq!(drain(&queue), "5");
    }

    #[test]
    fn a_full_queue_that_closes_gives_what_it_has_and_ends() {
        let queue = queue(2, Overflow::Close);
        offer(&queue, 0..4);
        assert_eq!(queue.ended(), Some(End::Overflow));
        assert_eq!(drain(&queue), "0 1");
        assert!(matches!(queue.try_take(), Taken::End));
    }

    #[test]
    fn a_reconnection_stands_where_it_happened() {
        let queue = queue(3, Overflow::DropOldest);
        offer(&queue, 0..2);
        queue.reconnected();
        queue.reconnected();
        offer(&queue, 2..3);
        assert_eq!(drain(&queue), "0 1 ? 2");
    }

    #[test]
    fn gaps_that_come_to_stand_together_are_kept() {
        let queue = queue(1, Overflow::DropOldest);
        offer(&queue, 0..1);
        queue.reconnected();
        offer(&queue, 1..2);
        assert_eq!(drain(&queue), "? +1 1");
    }

    /// Fails if the function does not return, as when it waits for itself.
    fn must_return(function: impl FnOnce() + Send + 'static) {
        let (returned, has_returned) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            function();
            returned.send(()).expect("the test waits");
        });
        let patience = std::time::Duration::from_secs(30);
        has_returned.recv_timeout(patience).expect("it returns");
    }

    /// A waker, and a payload, that look at the queue when they are dropped.
    struct LooksWhenDropped(Arc<Queue>);

    impl std::task::Wake for LooksWhenDropped {
        fn wake(self: Arc<Self>) {}
    }

    impl AsRef<[u8]> for LooksWhenDropped {
        fn as_ref(&self) -> &[u8] {
            &[7]
        }
    }

    impl Drop for LooksWhenDropped {
        fn drop(&mut self) {
            assert_eq!(self.0.ended(), None);
        }
    }

    #[test]
    fn a_reader_that_is_replaced_may_look_at_the_queue_when_it_is_dropped() {
        must_return(|| {
            let queue = Arc::new(queue(2, Overflow::DropOldest));
            let first = Waker::from(Arc::new(LooksWhenDropped(Arc::clone(&queue))));
            assert!(matches!(queue.take(&first), Taken::Nothing));
            drop(first);
            assert!(matches!(queue.take(Waker::noop()), Taken::Nothing));
            assert!(matches!(queue.take(Waker::noop()), Taken::Nothing));
        });
    }

    #[test]
    fn a_payload_that_gives_way_may_look_at_the_queue_when_it_is_dropped() {
        must_return(|| {
            let queue = Arc::new(queue(1, Overflow::DropOldest));
            let payload = Bytes::from_owner(LooksWhenDropped(Arc::clone(&queue)));
            let topic = Topic::new("/a").expect("a topic");
            queue.offer(&Message::new(topic, payload));
            offer(&queue, 0..1);
            assert_eq!(drain(&queue), "+1 0");
        });
    }

    proptest! {
        #[test]
        fn every_message_is_taken_or_counted_and_the_queue_is_bounded(
            steps in proptest::collection::vec(0..4_u8, 0..200),
            events_max in 1..5_usize,
            oldest in proptest::bool::ANY,
        ) {
            let overflow = if oldest { Overflow::DropOldest } else { Overflow::DropNewest };
            let queue = queue(events_max, overflow);
            let (mut offered, mut accounted, mut last) = (0_u64, 0_u64, None);
            for step in steps.into_iter().chain([3; 400]) {
                match step {
                    0 | 1 if offered < 256 => {
                        queue.offer(&message(u8::try_from(offered).expect("below 256")));
                        offered += 1;
                    }
                    2 => queue.reconnected(),
                    _ => match queue.try_take() {
                        Taken::Event(Event::Message(message)) => {
                            let number = u64::from(message.payload()[0]);
                            prop_assert_eq!(
                                number, accounted,
                                "in order, after gaps of the right size"
                            );
                            prop_assert!(last < Some(number));
                            last = Some(number);
                            accounted += 1;
                        }
                        Taken::Event(Event::Gap { missed, .. }) => accounted += missed.unwrap_or(0),
                        Taken::Nothing | Taken::End => {}
                    },
                }
                let state = queue.state.lock();
                prop_assert!(state.messages <= events_max);
                prop_assert!(state.items.len() <= 2 * events_max);
            }
            prop_assert_eq!(accounted, offered);
        }
    }
}
