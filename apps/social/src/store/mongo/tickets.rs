//! Tickets: rights that were sent by mail.

use jiff::Timestamp;
use mongodb::bson::doc;

use super::records::{Expiring, nanoseconds};
use super::tables::{Tables, delete, find, insert};
use crate::model::{NewTask, Ticket, User, UserChange};
use crate::store::{Result, StoreError};

impl Tables {
    pub(super) async fn insert_ticket(&self, ticket: &Ticket) -> Result<()> {
        let document = Expiring {
            id: ticket.token_hash.clone(),
            expires: nanoseconds(ticket.expires_at),
            record: ticket.clone(),
        };
        if insert(&self.tickets, &document).await? {
            return Ok(());
        }
        Err(StoreError::Conflict("there is a ticket of this token"))
    }

    pub(super) async fn ticket(&self, token_hash: &str, now: Timestamp) -> Result<Option<Ticket>> {
        let stored = find(&self.tickets, token_hash).await?;
        let ticket = stored.map(|stored| stored.record);
        Ok(ticket.filter(|ticket| ticket.expires_at > now))
    }

    pub(super) async fn use_ticket(
        &self,
        ticket: &Ticket,
        change: UserChange,
        tasks: &[NewTask],
    ) -> Result<Option<User>> {
        if find(&self.tickets, &ticket.token_hash).await?.is_none() {
            return Ok(None);
        }
        self.add_tasks(tasks).await?;
        let generation = i64::try_from(ticket.generation).map_err(StoreError::broken)?;
        // Not a later one: of two uses at once, the first one to end all sessions is the only one.
        let same = doc! { "record.generation": { "$not": { "$gt": generation } } };
        let user = self.update_user_if(ticket.user, same, change).await?;
        delete(&self.tickets, &ticket.token_hash).await?;
        Ok(user)
    }
}
