//! The account at the authority.

use std::sync::Arc;

use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use tokio::sync::Mutex;
use tracing::{error, info, warn};

use crate::client::CaClient;
use crate::failure::Failure;
use crate::order::persist;
use crate::store::{Store, StoreError};

/// An account elsewhere that ours is bound to (RFC 8555, 7.3.4).
pub(crate) struct ExternalAccount {
    pub(crate) key_id: String,
    pub(crate) mac_key: Vec<u8>,
}

/// The account of all groups: read from disk, or registered with the first order.
pub(crate) struct Accounts {
    pub(crate) directory_url: String,
    /// Addresses of mail, as `mailto:` URLs.
    pub(crate) contacts: Vec<String>,
    pub(crate) external: Option<ExternalAccount>,
    pub(crate) client: CaClient,
    pub(crate) store: Arc<Store>,
    pub(crate) held: Mutex<Held>,
}

#[derive(Default)]
pub(crate) struct Held {
    account: Option<Account>,
    /// The account's key. Kept when the account is forgotten, to tell apart the one that the
    /// authority does not know from the one that has taken its place.
    thumbprint: Option<String>,
}

impl Accounts {
    /// Returns the account. While it is registered, others that ask wait.
    pub(crate) async fn account(&self) -> Result<Account, Failure> {
        let mut held = self.held.lock().await;
        if let Some(account) = &held.account {
            return Ok(account.clone());
        }
        let account = match self.saved().await? {
            Some(credentials) => {
                let builder = Account::builder_with_http(Box::new(self.client.clone()));
                builder.from_credentials(credentials).await?
            }
            None => self.register().await?,
        };
        held.thumbprint = Some(account.key_thumbprint().to_owned());
        held.account = Some(account.clone());
        Ok(account)
    }

    /// Forgets what was read of the authority's directory, so that the next attempt reads it anew.
    pub(crate) async fn forget(&self) {
        self.held.lock().await.account = None;
    }

    /// Sets the account's key aside, since the authority does not know it.
    pub(crate) async fn unknown(&self, account: &Account) -> Result<(), Failure> {
        let mut held = self.held.lock().await;
        // Another group may have found it out before, and have registered again.
        if held.thumbprint.as_deref() != Some(account.key_thumbprint()) {
            return Ok(());
        }
        *held = Held::default();
        let aside = self.in_background(Store::set_account_aside).await?;
        warn!(
            account = account.id(), kept_at = ?aside,
            "the authority does not know the account; another one is registered"
        );
        Ok(())
    }

    async fn saved(&self) -> Result<Option<AccountCredentials>, Failure> {
        match self.in_background(Store::account).await {
            Err(error @ StoreError::Damaged { .. }) => {
                let aside = self.in_background(Store::set_account_aside).await?;
                error!(%error, kept_at = ?aside, "another account is registered");
                Ok(None)
            }
            read => Ok(read?),
        }
    }

    async fn register(&self) -> Result<Account, Failure> {
        let contacts: Vec<_> = self.contacts.iter().map(String::as_str).collect();
        let new = NewAccount {
            contact: &contacts,
            // The builder refuses to build without.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.external.as_ref();
        let external = external
            .map(|external| ExternalAccountKey::new(external.key_id.clone(), &external.mac_key));
        let registered = persist!({
            let builder = Account::builder_with_http(Box::new(self.client.clone()));
            let directory_url = self.directory_url.clone();
            builder.create(&new, directory_url, external.as_ref()).await
        });
        let (account, credentials) = registered?;
        self.in_background(move |store| store.save_account(&credentials))
            .await?;
        info!(account = account.id(), "an account is registered");
        Ok(account)
    }

    async fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> T {
        let store = Arc::clone(&self.store);
        in_background(move || work(&store)).await
    }
}

/// Does what waits for a disk where it holds up no other task.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
