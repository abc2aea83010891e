//! The paths of greenroom-actor and greenroom-cluster, as the crate that uses the attribute has to
//! write them.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span};
use syn::{Path, parse_quote};

/// Returns the path for an attribute that was imported from `greenroom_actor`.
pub(crate) fn of_actor() -> Path {
    direct()
        .or_else(through_greenroom)
        .unwrap_or_else(|| parse_quote!(::greenroom_actor))
}

/// Returns the path for an attribute that was imported from `greenroom::actor`.
// It differs from the other in a crate that has both: one of them may be for tests only, and a
// manifest does not tell which target is compiled.
pub(crate) fn of_greenroom() -> Path {
    through_greenroom()
        .or_else(direct)
        .unwrap_or_else(|| parse_quote!(::greenroom::actor))
}

/// Returns the path of greenroom-cluster.
pub(crate) fn of_cluster() -> Path {
    if let Some(name) = name_of("greenroom-cluster") {
        return parse_quote!(::#name);
    }
    name_of("greenroom").map_or_else(
        || parse_quote!(::greenroom_cluster),
        |name| parse_quote!(::#name::cluster),
    )
}

fn direct() -> Option<Path> {
    let name = name_of("greenroom-actor")?;
    Some(parse_quote!(::#name))
}

fn through_greenroom() -> Option<Path> {
    let name = name_of("greenroom")?;
    Some(parse_quote!(::#name::actor))
}

/// Returns the name of a package in the code of the crate that is compiled, by its `Cargo.toml`.
fn name_of(package: &str) -> Option<Ident> {
    let name = match crate_name(package).ok()? {
        // Its tests, examples and documentation name it from outside.
        FoundCrate::Itself => package.replace('-', "_"),
        FoundCrate::Name(name) => name,
    };
    Some(Ident::new(&name, Span::call_site()))
}
