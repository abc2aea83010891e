//! Visibility: a trait has one, methods may have several.

use syn::Visibility;

/// The visibility of a method, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    Private,
    Super,
    Crate,
    Public,
}

impl Reach {
    pub(crate) fn of(visibility: &Visibility) -> syn::Result<Self> {
        let Visibility::Restricted(restricted) = visibility else {
            return Ok(match visibility {
                Visibility::Public(_) => Self::Public,
                _ => Self::Private,
            });
        };
        if restricted.path.is_ident("crate") {
            Ok(Self::Crate)
        } else if restricted.path.is_ident("super") {
            Ok(Self::Super)
        } else if restricted.path.is_ident("self") {
            Ok(Self::Private)
        } else {
            let text = "a message is `pub`, `pub(crate)`, `pub(super)` or private";
            Err(syn::Error::new_spanned(visibility, text))
        }
    }

    /// Returns the prefix of the trait's name in a block that has messages of wider visibility.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Private => "Private",
            Self::Super => "Super",
            Self::Crate => "Crate",
            Self::Public => "Public",
        }
    }
}
