//! Expansion of `Self`, for code outside of the actor's own `impl` blocks.

use syn::visit_mut::{self, VisitMut};
use syn::{ExprPath, Path, QSelf, Token, Type, TypePath};

/// A visitor that replaces `Self` by the actor's type.
pub(crate) struct WriteOut<'a> {
    pub(crate) actor: &'a Type,
}

impl WriteOut<'_> {
    /// Turns `Self::Rest` into `<Actor>::Rest`.
    fn qualify(&self, qualified: &mut Option<QSelf>, path: &mut Path) {
        if qualified.is_some() || !starts_with_self(path) {
            return;
        }
        path.leading_colon = Some(<Token![::]>::default());
        path.segments = std::mem::take(&mut path.segments)
            .into_iter()
            .skip(1)
            .collect();
        *qualified = Some(QSelf {
            lt_token: <Token![<]>::default(),
            ty: Box::new(self.actor.clone()),
            position: 0,
            as_token: None,
            gt_token: <Token![>]>::default(),
        });
    }
}

impl VisitMut for WriteOut<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if is_self(ty) {
            *ty = self.actor.clone();
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }

    fn visit_type_path_mut(&mut self, node: &mut TypePath) {
        self.qualify(&mut node.qself, &mut node.path);
        visit_mut::visit_type_path_mut(self, node);
    }

    fn visit_expr_path_mut(&mut self, node: &mut ExprPath) {
        self.qualify(&mut node.qself, &mut node.path);
        visit_mut::visit_expr_path_mut(self, node);
    }
}

fn is_self(ty: &Type) -> bool {
    matches!(ty, Type::Path(node) if node.qself.is_none() && node.path.is_ident("Self"))
}

fn starts_with_self(path: &Path) -> bool {
    let first = path.segments.first();
    first.is_some_and(|segment| segment.ident == "Self")
}
