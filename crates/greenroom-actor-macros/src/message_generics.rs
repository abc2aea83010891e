//! Selection of a message's generics: of the actor's, those that its fields mention.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{GenericParam, Generics, Path, Type, WherePredicate};

/// Returns the parameters that `fields` mention, with those bounds that involve no others.
pub(crate) fn of_fields<'a>(actor: &Generics, fields: impl Iterator<Item = &'a Type>) -> Generics {
    let all = names(actor.params.iter());
    let mut mentions = Mentions::of(&all);
    for field in fields {
        mentions.visit_type(field);
    }
    let used = mentions.found;
    let mut generics = Generics::default();
    let params = actor.params.iter();
    let params = params.filter(|param| name(param).is_some_and(|name| used.contains(name)));
    generics.params = params
        .map(|param| with_bounds_on(param.clone(), &all, &used))
        .collect();
    let clause = actor.where_clause.iter();
    let mut predicates = clause
        .flat_map(|clause| &clause.predicates)
        .filter(|predicate| speaks_of(predicate, &all, &used))
        .peekable();
    if predicates.peek().is_some() {
        let kept = &mut generics.make_where_clause().predicates;
        kept.extend(predicates.cloned());
    }
    generics
}

fn with_bounds_on(
    mut param: GenericParam,
    all: &BTreeSet<Ident>,
    used: &BTreeSet<Ident>,
) -> GenericParam {
    if let GenericParam::Type(param) = &mut param {
        let bounds = std::mem::take(&mut param.bounds).into_iter();
        let is_kept = |bound: &syn::TypeParamBound| {
            let mut mentions = Mentions::of(all);
            mentions.visit_type_param_bound(bound);
            mentions.found.is_subset(used)
        };
        param.bounds = bounds.filter(is_kept).collect();
    }
    param
}

fn speaks_of(predicate: &WherePredicate, all: &BTreeSet<Ident>, used: &BTreeSet<Ident>) -> bool {
    let mut mentions = Mentions::of(all);
    mentions.visit_where_predicate(predicate);
    !mentions.found.is_empty() && mentions.found.is_subset(used)
}

fn names<'a>(params: impl Iterator<Item = &'a GenericParam>) -> BTreeSet<Ident> {
    params.filter_map(name).cloned().collect()
}

fn name(param: &GenericParam) -> Option<&Ident> {
    match param {
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
        GenericParam::Lifetime(_) => None,
    }
}

struct Mentions<'a> {
    of: &'a BTreeSet<Ident>,
    found: BTreeSet<Ident>,
}

impl<'a> Mentions<'a> {
    fn of(of: &'a BTreeSet<Ident>) -> Self {
        Self {
            of,
            found: BTreeSet::new(),
        }
    }
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_path(&mut self, path: &'ast Path) {
        let first = path.segments.first();
        let first = first.filter(|_| path.leading_colon.is_none());
        if let Some(segment) = first
            && self.of.contains(&segment.ident)
        {
            self.found.insert(segment.ident.clone());
        }
        visit::visit_path(self, path);
    }
}
